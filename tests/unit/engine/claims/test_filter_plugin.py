"""DynamicResources among kube-scheduler's filters: whole attempts at pods with claims."""

from datetime import UTC, datetime

import pytest

from engine.claims.filter_plugin import ClaimsPlugin
from engine.claims.gates import Gates, select_gates
from engine.claims.inventory import read_inventory
from engine.filters.judge import judge
from engine.filters.judgement import JudgedOutcome, Judgement
from engine.filters.release import LATEST, SchedulerRelease
from engine.snapshot import kinds
from engine.snapshot.reading import read_snapshot
from tests.support.builders.claims import a_claim, a_class, a_device, a_pod_with, a_request, a_slice, an_allocation
from tests.support.builders.cluster import Object, a_node, a_taint

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)


def judge_attempt(*objects: Object, unread: tuple[str, ...] = (), pod: Object | None = None) -> Judgement:
    snapshot = read_snapshot(objects, unread)
    plugin = ClaimsPlugin(read_inventory(snapshot), now=NOW)
    judgement = judge(snapshot, pod or a_pod_with("c0"), devices=plugin)
    assert isinstance(judgement, Judgement)
    return judgement


def test_a_pod_fits_where_its_claim_gets_devices() -> None:
    judgement = judge_attempt(a_node(), a_node("n2"), a_class(), a_slice(a_device("a")), a_claim())
    assert judgement.outcome is JudgedOutcome.FITS
    assert judgement.fitting == ("n1",)


def test_the_message_has_the_words_of_kube_scheduler() -> None:
    judgement = judge_attempt(a_node(), a_node("n2", taints=[a_taint("x")]), a_class(), a_claim())
    assert judgement.message == (
        "0/2 nodes are available: 1 cannot allocate all claims, 1 node(s) had untolerated taint(s). still not "
        "schedulable, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )


def test_a_pod_whose_claim_is_missing_never_enters_the_queue() -> None:
    judgement = judge_attempt(a_node(), a_class())
    assert judgement.outcome is JudgedOutcome.GATED
    assert judgement.pre_enqueue[0].reasons == ('could not find ResourceClaim "default/c0"',)


def test_a_pod_whose_class_is_missing_is_refused_before_the_nodes() -> None:
    judgement = judge_attempt(a_node(), a_claim())
    assert judgement.outcome is JudgedOutcome.PREFILTER
    assert judgement.message.startswith(
        "0/1 nodes are available: request r0: device class gpu does not exist. no new claims to deallocate"
    )


def test_an_error_of_a_selector_ends_the_attempt() -> None:
    claim = a_claim(a_request("device.attributes['gpu.nvidia.com'].rack == 'r1'"))
    judgement = judge_attempt(a_node(), a_class(), a_slice(a_device("a")), claim)
    assert judgement.outcome is JudgedOutcome.ERROR
    assert judgement.message == (
        'running "DynamicResources" filter plugin: claim default/c0: selector #0: CEL runtime error: no such key: rack'
    )


def build_distant_status(pods: list[str]) -> Object:
    """Build the status of a claim whose devices are on another node."""
    status = an_allocation("a", node="n9", pods=pods)
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n9"]}]}]
    status["allocation"]["nodeSelector"] = {"nodeSelectorTerms": terms}
    return status


@pytest.mark.parametrize(
    ("pods", "text"),
    [
        ([], "deallocation of ResourceClaim completed"),
        (["p1"], "deallocation of ResourceClaim completed"),
        (["other"], "still not schedulable"),
        (["p1", "other"], "still not schedulable"),
    ],
)
def test_a_claim_whose_devices_are_elsewhere_is_given_back_if_it_has_no_other_user(pods: list[str], text: str) -> None:
    judgement = judge_attempt(a_node(), a_class(), a_claim(status=build_distant_status(pods)))
    assert f"resourceclaim not available on the node. {text}, preemption" in judgement.message


@pytest.mark.parametrize("kind", [kinds.RESOURCE_CLAIM, kinds.RESOURCE_SLICE, kinds.DEVICE_CLASS])
def test_what_was_not_read_leaves_the_verdict_open(kind: str) -> None:
    judgement = judge_attempt(a_node(), a_class(), a_claim(), unread=(kind,))
    assert judgement.outcome is JudgedOutcome.OPEN
    assert {name for entry in judgement.unjudged for name in entry.kinds} == {kind}


def test_an_allocated_claim_is_judged_without_slices_and_classes() -> None:
    """kube-scheduler compares the node with the selector of the allocation."""
    unread = (kinds.RESOURCE_SLICE, kinds.DEVICE_CLASS)
    judgement = judge_attempt(a_node(), a_claim(status=build_distant_status(["other"])), unread=unread)
    assert judgement.outcome is JudgedOutcome.UNFIT
    assert "1 resourceclaim not available on the node" in judgement.message


def test_a_pod_without_claims_is_judged_without_them() -> None:
    judgement = judge_attempt(a_node(), unread=(kinds.RESOURCE_CLAIM,), pod=a_pod_with())
    assert judgement.outcome is JudgedOutcome.FITS
    assert "DynamicResources" in judgement.skipped


def test_a_malformed_claim_leaves_the_verdict_open() -> None:
    assert judge_attempt(a_node(), a_class(), a_claim(a_request(count="two"))).outcome is JudgedOutcome.OPEN


def test_a_malformed_device_leaves_its_node_open() -> None:
    judgement = judge_attempt(a_node(), a_class(), a_slice(a_device("a", taints="all")), a_claim())
    assert judgement.outcome is JudgedOutcome.OPEN
    assert list(judgement.undecided) == ["n1"]


def test_gates_follow_the_release_and_what_is_set() -> None:
    assert select_gates(LATEST) == Gates()
    older = select_gates(SchedulerRelease(34, 1, {"DRAListTypeAttributes": True, "DRAPrioritizedList": False}))
    assert (older.admin_access, older.prioritized_list, older.list_attributes) == (True, False, True)
    assert not older.consumable_capacity
    assert not older.binding_conditions
