import pytest

from engine.summaries.node_pools import find_pool, list_pools, parse_expected_pools, parse_pools


def test_without_a_rule_every_namespace_may_use_every_node() -> None:
    assert parse_expected_pools("a100=gpu-*", "") is None


@pytest.mark.parametrize(
    ("namespace", "allowed"),
    [
        ("team-a", {"a100", "t4"}),
        ("batch-night", {"t4"}),
        ("batch-x", {"a100"}),
        ("web", set()),
        ("other", None),
    ],
)
def test_the_first_pattern_that_matches_a_namespace_gives_its_pools(namespace: str, allowed: set[str] | None) -> None:
    pools = parse_expected_pools("a100=gpu-*,t4=t4-*", " team-a = a100 | t4 ,batch-x=a100,batch-*=t4,web=")
    assert pools
    assert pools.list_allowed(namespace) == allowed
    assert (pools.get_pool("gpu-7"), pools.get_pool("t4-1"), pools.get_pool("cpu")) == ("a100", "t4", "")


def test_without_pools_no_node_is_in_one() -> None:
    pools = parse_expected_pools("", "web=")
    assert pools
    assert pools.get_pool("gpu-7") == ""


@pytest.mark.parametrize(
    ("labels", "pool"),
    [
        ({"cloud.google.com/gke-nodepool": "train"}, ("train", "cloud.google.com/gke-nodepool")),
        ({"kubernetes.azure.com/agentpool": "np1"}, ("np1", "kubernetes.azure.com/agentpool")),
        # Karpenter makes nodes next to those of a node group.
        (
            {"eks.amazonaws.com/nodegroup": "system", "karpenter.sh/nodepool": "gpu"},
            ("gpu", "karpenter.sh/nodepool"),
        ),
        ({"node.kubernetes.io/instance-type": "p4d.24xlarge"}, ("", "")),
    ],
)
def test_a_label_of_the_provider_names_the_pool_of_a_node(labels: dict[str, str], pool: tuple[str, str]) -> None:
    assert find_pool("n1", None, labels) == pool
    # The names of the setting come before labels, and labels before none.
    by_name = parse_pools("rack=n1,other=n2")
    assert find_pool("n1", by_name, labels) == ("rack", "SCHEDULERLOG_NODE_POOLS")
    assert find_pool("n3", by_name, labels) == pool


def test_pools_of_the_setting_are_listed_once_by_name() -> None:
    assert list_pools("t4=t4-*,a100=gpu-a100-*,t4=old-*") == ["a100", "t4"]
    assert list_pools("") == []
