"""Records of the page's tests, in a cluster of its own: a refused pod, a placed one, 5,000 nodes, and hostile names."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from engine.diagnosis.waiting import derive_wait
from engine.fit import manifests
from engine.fit.events.attempt import Identity
from engine.fit.events.state_builder import Life
from engine.fit.judge.decision import SchedulingPolicy
from engine.fit.simulate import build_columns, simulate
from engine.summaries.fold import summarize
from engine.summaries.merge import settle
from engine.summaries.trends import Minute, build_records, derive_contribution, list_weights
from schemas.events import (
    AttemptEvent,
    AttemptSummarized,
    BindOutcome,
    DeviceAllocation,
    DevicesJudged,
    NodeRegistered,
    Refusal,
    Request,
    TrendsCounted,
)
from schemas.ids import count_microseconds, derive_attempt_id
from schemas.placements import PodPlacement
from tests.support.harness.index_filling import Filling, a_finding, an_attempt
from tests.support.harness.states_in_memory import build_states

CLUSTER: Final = "page"
NOW: Final = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=5)
EARLIER: Final = NOW - timedelta(hours=1)
EXAMPLES: Final = Path("examples")
REFUSED: Final = "default/gpu-pod-default"
PLACED: Final = "default/gpu-pod"
LARGE: Final = "default/large"
HOSTILE: Final = "default/hostile"
HARM: Final = "<script>window.harmed=1</script><img src=x onerror=window.harmed=1>"
ESCAPES: Final = "\x1b[31mred\x1b[0m"
REVERSED: Final = "\u202edetrever\u2066"


def fill(filling: Filling) -> None:
    columns = build_columns(manifests.read(EXAMPLES / "cluster.yaml"))
    for started_at in (EARLIER, NOW):
        states = build_states(columns, Life(Identity(CLUSTER, "hami-scheduler"), count_microseconds(started_at)))
        filling.publish_states(*states)
        filling.index_states(*states, written_at=started_at)
    refused, placed = _simulate_example("2-gpu-pod-default", NOW), _simulate_example("1-gpu-pod", EARLIER)
    filling.index_devices(*(event for event in [*refused, *placed] if isinstance(event, DevicesJudged)))
    bound = _bind(summarize(placed))
    summaries = [
        summary.model_copy(update={"wait": derive_wait(summary)})
        for summary in (summarize(refused), build_earlier(), bound, build_large(), build_hostile())
    ]
    filling.publish(*summaries)
    filling.index(*summaries)
    filling.index_placements(_build_placement(bound))
    filling.index_trends(
        *(event for partition, summary in enumerate(summaries) for event in _count_trends(summary, partition))
    )
    filling.index_findings(
        *(a_finding(pod, node=node, found_at=NOW).model_copy(update={"cluster": CLUSTER})
          for pod, node in ((PLACED, "node1"), (HOSTILE, HARM)))
    )  # fmt: skip
    filling.index_observations(_build_registration())


def get_refused_attempt() -> str:
    """Return the id of the refused pod's latest attempt."""
    return summarize(_simulate_example("2-gpu-pod-default", NOW)).attempt_id


def _simulate_example(name: str, started_at: datetime) -> list[AttemptEvent]:
    cluster = manifests.read(EXAMPLES / "cluster.yaml")
    pod = manifests.read_pod(EXAMPLES / "pods" / f"{name}.yaml")
    events = simulate(cluster, pod, "hami-scheduler", SchedulingPolicy(), started_at)
    return [event.model_copy(update={"cluster": CLUSTER}) for event in events]


def build_earlier() -> AttemptSummarized:
    """Build the refused pod's attempt half an hour earlier, when something else kept it out."""
    names = [f"node{number}" for number in range(1, 10)]
    earlier = an_attempt(REFUSED, started_at=NOW - timedelta(minutes=30), nodes=names, reason="CardInsufficientMemory")
    return earlier.model_copy(update={"cluster": CLUSTER})


def _bind(summary: AttemptSummarized) -> AttemptSummarized:
    assert summary.chosen
    bind = BindOutcome(node=summary.chosen, bound=True, ended_at=summary.started_at + timedelta(milliseconds=90))
    return settle(summary.model_copy(update={"bind": bind}))


def _build_placement(bound: AttemptSummarized) -> PodPlacement:
    assert bound.chosen
    return PodPlacement(
        cluster=CLUSTER,
        id=bound.attempt_id,
        pod=bound.pod,
        node=bound.chosen,
        started_at=bound.started_at,
        bound_at=bound.started_at,
        scheduler=bound.scheduler,
        attempt_id=bound.attempt_id,
        phase="Running",
        allocations=[
            DeviceAllocation(uuid=uuid, container="main", memory_mib=3000, cores_percent=30)
            for uuid in bound.picked_devices
        ],
    )


def _count_trends(summary: AttemptSummarized, partition: int) -> list[TrendsCounted]:
    minute_start = summary.started_at.replace(second=0, microsecond=0)
    minute = Minute(CLUSTER, minute_start, partition, minute_start)
    minute.put(summary.pod.name, list_weights(summary.pod.namespace, derive_contribution(summary, None)), ())
    return list(build_records(minute))


def _build_registration() -> NodeRegistered:
    numbers = {name: [number] * 2 for name, number in (("memory_mib", 40960), ("cores_percent", 100), ("slots", 10))}
    return NodeRegistered.model_validate(
        {
            "cluster": CLUSTER, "node": "node1", "observed_at": NOW - timedelta(hours=2), "scheduler": "hami-scheduler",
            "registered": True, "handshake": f"Reported {HARM}", "uuid": [f"GPU-{HARM}", "GPU-1"], "index": [0, 1],
            "model": [REVERSED, "NVIDIA A100"], "mode": ["hami-core"] * 2, "healthy": [True, False], "numa": [0, 0],
        } | numbers
    )  # fmt: skip


def build_large() -> AttemptSummarized:
    """Build an attempt on 5,000 nodes with 8 devices, refused in 60 different ways."""
    names = [f"gpu-node-{number:04}.rack{number % 40}.example" for number in range(5000)]
    refusals = [
        Refusal(counts={"CardInsufficientMemory": count, "CardInsufficientCore": 8 - count}, devices=8)
        for count in range(1, 8)
    ]
    refusals += [Refusal(counts={f"Reason{number}": 8}, devices=8) for number in range(53)]
    plain = an_attempt(LARGE, started_at=NOW - timedelta(minutes=2), nodes=names)
    columns = {"refusals": refusals, "refusal": [number * number % 60 for number in range(5000)]}
    return _retag(plain, **columns)


def build_hostile() -> AttemptSummarized:
    names = [HARM, ESCAPES, REVERSED, "node1"]
    plain = an_attempt(HOSTILE, started_at=NOW - timedelta(minutes=3), nodes=names)
    refusals = [Refusal(bare=HARM, cause=ESCAPES), Refusal(counts={HARM: 8}, devices=8), Refusal(bare=REVERSED)]
    return _retag(
        plain,
        scheduler=f"hami {HARM}",
        requests=[Request(container=HARM, vendor="NVIDIA", count=1)],
        constraints={HARM: REVERSED},
        refusals=refusals,
        refusal=[0, 1, 2, 0],
    )


def _retag(plain: AttemptSummarized, **fields: object) -> AttemptSummarized:
    identity = {
        "cluster": CLUSTER,
        "attempt_id": derive_attempt_id(CLUSTER, plain.scheduler, plain.pod.uid, plain.started_at),
    }
    attempt = AttemptSummarized.model_validate(plain.model_dump() | identity | fields)
    return settle(attempt)
