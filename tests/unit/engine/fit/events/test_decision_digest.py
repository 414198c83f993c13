"""The digest is equal exactly where the records say the same, whatever the order of the nodes."""

import random
from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.events.attempt import AttemptRef, Identity
from engine.fit.events.decision_digest import digest_refusals
from engine.fit.events.event_builder import Circumstances, build_events
from engine.fit.judge.decide import decide
from engine.fit.judge.decision import Decision, SchedulingPolicy
from engine.summaries.fold import summarize
from schemas.events import AttemptConcluded, DevicesJudged, PodRef
from schemas.json_types import Json
from tests.support.builders.kube_objects import STARTED, a_cluster, a_container, a_device, a_node, a_pod
from tests.support.harness.states_in_memory import LIFE
from tests.support.stress import count_examples

ATTEMPT = AttemptRef.start(
    Identity("default", "hami-scheduler"), PodRef(namespace="default", name="pod1", uid="uid-pod1"), STARTED
)
NAMES = ("node1", "node2", "node3", "node4", "cpu-node")
MISSING_NODES = ("broken-node",)


def list_content(decision: Decision, circumstances: Circumstances) -> dict[str, Any]:
    """List what the records say, node by node, by reading them as a consumer does."""
    events = list(build_events(ATTEMPT, decision, STARTED, epoch=LIFE.epoch, circumstances=circumstances))
    end = events[-1]
    assert isinstance(end, AttemptConcluded)
    summary = summarize(events)
    rows: dict[str, Any] = {}
    for event in events:
        if isinstance(event, DevicesJudged):
            position = 0
            positions = event.device.tolist() or None
            for node, count in zip(event.nodes, event.rows.tolist(), strict=True):
                words = [event.verdicts[code] for code in event.verdict[position : position + count].tolist()]
                devices = positions[position : position + count] if positions else list(range(count))
                rows[f"{event.container}/{node}"] = [event.request.model_dump(), words, devices]
                position += count
    nodes = {
        node: (
            summary.verdicts[summary.verdict[row]],
            int(summary.refused_by[row]),
            summary.refusals[summary.refusal[row]].model_dump() if summary.refusal[row] >= 0 else None,
        )
        for row, node in enumerate(summary.nodes)
    }
    shared = end.model_dump(exclude={"device_records", "node_records"})
    return {"rows": rows, "nodes": nodes, "end": shared}


def build_columns(uses: list[int]) -> ClusterColumns:
    """Build nodes of two devices of another memory each, with nodes that have none or a broken registration."""
    nodes = [
        a_node(name, [a_device(f"{name}-{index}", devmem=memory) for index in range(2)])
        for name, memory in zip(NAMES, uses, strict=False)
    ]
    return a_cluster(*nodes)


def decide_pod(columns: ClusterColumns, pod: Json, names: list[str]) -> Decision | None:
    answer = decide(columns, pod, names, SchedulingPolicy())
    return answer if isinstance(answer, Decision) and answer.chosen is None else None


memories = st.lists(st.sampled_from([8_000, 20_000, 40_000]), min_size=4, max_size=4)
pods = st.builds(
    lambda counts, memory: a_pod(
        containers=[a_container(f"c{index}", gpus=count, gpumem=memory) for index, count in enumerate(counts)]
    ),
    st.lists(st.sampled_from([0, 1, 2, 3]), min_size=1, max_size=3),
    st.sampled_from([10_000, 30_000, 50_000]),
)


@settings(max_examples=count_examples(60), deadline=None)
@given(memories, pods, pods, st.integers(0, 2**32), st.booleans())
def test_two_decisions_have_one_digest_exactly_where_their_records_say_the_same(
    uses: list[int], pod: Json, other: Json, seed: int, is_described: bool
) -> None:
    columns, chance = build_columns(uses), random.Random(seed)
    tries = []
    for requesting in (pod, pod, other):
        names = [*NAMES, *MISSING_NODES][: chance.choice([5, 6, 6])]
        chance.shuffle(names)
        if decision := decide_pod(columns, requesting, names):
            circumstances = Circumstances(settings_digest="a" if is_described else chance.choice("ab"))
            tries.append((list_content(decision, circumstances), digest_refusals(decision, circumstances)))
    for content, digest in tries:
        for other_content, other_digest in tries:
            assert (content == other_content) == (digest == other_digest)
