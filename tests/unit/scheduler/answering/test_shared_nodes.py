"""A node where another scheduler gives devices away is left to it; pods of ours, and of HAMi that we replaced, are not
another's.

The rule is that of docs/decisions/0053. The annotations are HAMi's own (`pkg/util/types.go`), as its scheduler writes
them into a pod.
"""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.fit.judge.decision import SchedulingPolicy
from engine.fit.manifests import parse
from engine.fit.simulate import simulate
from engine.hami.annotations import ASSIGNED_NODE, CORDONED_DEVICES, DEVICES_ALLOCATED
from engine.summaries.fold import summarize
from engine.summaries.messages import count_nodes_by_reason
from schemas.events import AttemptEvent, NodeStateChanged
from schemas.json_types import Json
from tests.support.builders.kube_objects import STARTED, a_container, a_node, a_pod
from tests.support.harness.scheduler_app import Serving

OURS, HAMI = "hami-scheduler", "hami-of-others"
REASON = "NodeOfAnotherScheduler"


def a_placed_pod(name: str, scheduler: str, node: str = "node1", *, is_bound: bool = True) -> Json:
    """Build a pod with a tenth of the first device of a node."""
    annotations = {ASSIGNED_NODE: node, DEVICES_ALLOCATED: f"GPU-{node}-0,NVIDIA,3000,10:;"}
    pod = a_pod(name, [a_container(gpumem=3000, gpucores=10)], annotations, namespace="secret-team")
    pod["spec"] |= {"schedulerName": scheduler} | ({"nodeName": node} if is_bound else {})
    return pod


NODES = (a_node("node1", devices=2), a_node("node2", devices=2))
BOTH = ("node1", "node2")


@pytest.fixture
async def serve(tmp_path: Path) -> AsyncIterator[Callable[..., Serving]]:
    started: list[Serving] = []

    def start(*objects: Json, **how: Any) -> Serving:
        started.append(Serving(tmp_path / str(len(started)), *objects, **how))
        return started[-1]

    yield start
    for app in started:
        await app.close()


async def offer_nodes(serving: Serving, name: str = "new", nodes: tuple[str, ...] = BOTH) -> Json:
    serving.cluster.note_offered(a_pod(name))
    answer = await serving.filter(a_pod(name), nodes)
    assert not answer["Error"], answer
    return answer


@pytest.mark.parametrize("is_bound", [True, False], ids=["bound", "decided about"])
async def test_a_node_with_a_pod_of_another_scheduler_is_never_chosen(
    serve: Callable[..., Serving], is_bound: bool
) -> None:
    serving = serve(*NODES, a_placed_pod("theirs", HAMI, is_bound=is_bound))
    for number in range(3):
        assert (await offer_nodes(serving, f"pod{number}"))["NodeNames"] == ["node2"]
    assert (await offer_nodes(serving, "alone", ("node1",)))["FailedNodes"] == {"node1": REASON}


async def test_a_scheduler_that_asks_our_extender_gives_no_device_away_by_itself(serve: Callable[..., Serving]) -> None:
    serving = serve(*NODES, a_placed_pod("theirs", HAMI), a_placed_pod("another", "volcano", "node2"))
    assert (await offer_nodes(serving))["FailedNodes"] == {"node1": REASON, "node2": REASON}
    asking = a_pod("asking")
    asking["spec"]["schedulerName"] = HAMI
    serving.cluster.note_offered(asking)
    assert (await serving.filter(asking, BOTH))["NodeNames"] == ["node1"]
    assert (await offer_nodes(serving))["NodeNames"] == ["node1"]


@pytest.mark.parametrize("shares_with", [(), (HAMI,)])
async def test_simulate_withholds_the_nodes_that_the_scheduler_withholds(
    serve: Callable[..., Serving], shares_with: tuple[str, ...]
) -> None:
    ended = a_placed_pod("ended", HAMI, "node2") | {"status": {"phase": "Succeeded"}}
    objects = [*NODES, a_placed_pod("theirs", HAMI), a_placed_pod("ours", OURS, "node2"), ended]
    manifest = parse(yaml.safe_dump_all(objects).encode(), Path("cluster.yaml"))
    events = simulate(manifest, a_pod("new"), OURS, SchedulingPolicy(), STARTED, shares_with=shares_with)
    summary = summarize(events)
    answer = await offer_nodes(serve(*objects, shares_with=shares_with))
    assert [summary.chosen] == answer["NodeNames"]
    assert count_nodes_by_reason(summary) == ({} if shares_with else {REASON: 1})
    causes = [] if shares_with else ["pods of hami-of-others hold devices there"]
    assert [refusal.cause for refusal in summary.refusals] == causes


async def test_the_event_names_the_scheduler_and_no_pod_of_another_namespace(serve: Callable[..., Serving]) -> None:
    serving = serve(*NODES, a_placed_pod("theirs", HAMI), a_placed_pod("another", "volcano"))
    await offer_nodes(serving, nodes=("node1", "absent"))
    events = serving.take_events()
    summary = summarize([event for event in events if isinstance(event, AttemptEvent)])
    assert count_nodes_by_reason(summary) == {REASON: 1, "node unregistered": 1}
    (cause,) = [refusal.cause for refusal in summary.refusals if refusal.bare == REASON]
    assert cause == "pods of hami-of-others and volcano hold devices there"
    assert summary.verdicts[summary.verdict[summary.nodes.index("node1")]] == "refused"
    # What reads our states for a judgement of its own must not take a device of this node for one of ours.
    assert [event.node for event in events if isinstance(event, NodeStateChanged) and event.uuid] == ["node2"]


def test_the_metric_counts_nodes_with_devices(serve: Callable[..., Serving]) -> None:
    serving = serve(*NODES, a_placed_pod("theirs", HAMI), a_placed_pod("outside", HAMI, "not-selected"))
    assert serving.columns.count_withheld() == 1


async def test_the_node_is_ours_again_when_their_last_pod_is_gone_with_what_changed_meanwhile(
    serve: Callable[..., Serving],
) -> None:
    theirs = [a_placed_pod("theirs", HAMI), a_placed_pod("another", "volcano")]
    cordoned = a_node("node1", devices=2, annotations={CORDONED_DEVICES: "GPU-node1-1"})
    serving = serve(*NODES[:1], *theirs)
    serving.edit(cordoned, *theirs)
    serving.edit(cordoned, theirs[1])
    assert (await offer_nodes(serving, "first", ("node1",)))["FailedNodes"] == {"node1": REASON}
    serving.edit(cordoned)
    # One of two devices is cordoned, the other empty: 100 % of two devices do not fit, of one they do.
    both = a_pod("both", [a_container(gpus=2, gpucores=100)])
    assert (await serving.filter(both, ["node1"]))["FailedNodes"] == {
        "node1": "1/2 AllocatedCardsInsufficientRequest, 1/2 CardCordoned"
    }
    assert (await serving.filter(a_pod("one", [a_container(gpucores=100)]), ["node1"]))["NodeNames"] == ["node1"]


async def test_what_our_pods_hold_counts_still_when_the_node_comes_back(serve: Callable[..., Serving]) -> None:
    serving = serve(*NODES[:1], a_placed_pod("ours", OURS), a_placed_pod("theirs", HAMI))
    serving.edit(*NODES[:1], a_placed_pod("ours", OURS))
    both = a_pod("both", [a_container(gpus=2, gpucores=95)])
    assert (await serving.filter(both, ["node1"]))["NodeNames"] is None


async def test_pods_that_hami_placed_before_it_was_replaced_withhold_nothing(serve: Callable[..., Serving]) -> None:
    serving = serve(*NODES[:1], a_placed_pod("placed-by-hami", OURS))
    assert (await offer_nodes(serving, nodes=("node1",)))["NodeNames"] == ["node1"]


async def test_a_pod_without_devices_of_another_scheduler_withholds_nothing(serve: Callable[..., Serving]) -> None:
    plain = a_pod("plain", [a_container(gpus=0)])
    plain["spec"] |= {"schedulerName": "default-scheduler", "nodeName": "node1"}
    assert (await offer_nodes(serve(*NODES[:1], plain), nodes=("node1",)))["NodeNames"] == ["node1"]


async def test_a_profile_that_is_named_shares_its_nodes(serve: Callable[..., Serving]) -> None:
    serving = serve(*NODES[:1], a_placed_pod("theirs", HAMI), shares_with=(HAMI,))
    assert (await offer_nodes(serving, nodes=("node1",)))["NodeNames"] == ["node1"]


async def test_a_decision_is_not_bound_where_another_scheduler_came_in_between(serve: Callable[..., Serving]) -> None:
    pod = a_pod("new")
    serving = serve(*NODES[:1], pod)
    assert (await offer_nodes(serving, nodes=("node1",)))["NodeNames"] == ["node1"]
    serving.edit(*NODES[:1], pod, a_placed_pod("theirs", HAMI))
    error = await serving.bind(pod)
    assert error == f"node node1 is left to another scheduler: pods of {HAMI} hold devices there"
    assert (await offer_nodes(serving, nodes=("node1",)))["FailedNodes"] == {"node1": REASON}
