"""Filter calls that HAMi v2.10.0 was asked (tests/conformance/cases), as facts of a diagnosis."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from engine.diagnosis.facts import DiagnosisFacts
from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.events.attempt import AttemptRef
from engine.fit.events.event_builder import Circumstances, events_of, failure_of
from engine.fit.events.identity import Identity
from engine.fit.judge.decide import decide
from engine.fit.judge.decision import Decision, Failed, SchedulingPolicy
from engine.fit.judge.request.pod_annotations import constraints_of
from engine.summaries.fold import summarize
from engine.summaries.text import NODE_UNREGISTERED, refusal_text
from schemas.answers.devices import DeviceLog
from schemas.events import AttemptEvent, AttemptSummarized, DevicesJudged, PodRef, Refusal
from schemas.events.node_states import state_id
from tests.conformance.cluster import cluster_of, policy_of
from tests.conformance.objects import pod_object
from tests.support.harness.states_in_memory import LIFE, read_back, states_of

Case = dict[str, Any]


def facts_of_call(case: Case, offered: Sequence[str] = ()) -> DiagnosisFacts:
    """What schedulerlog knows when HAMi's recorded call was one of its own scheduler; ``offered``: of these nodes."""
    started = datetime.fromisoformat(case["clock"])
    names = offered or case["node_names"]
    return facts_of_decision(cluster_of(case), pod_object(case["pod"]), names, policy_of(case), started)


def facts_of_decision(
    columns: ClusterColumns, pod: Case, names: Sequence[str], policy: SchedulingPolicy, started: datetime
) -> DiagnosisFacts:
    """What schedulerlog knows three minutes after our scheduler decided this."""
    ref = PodRef(**{key: pod["metadata"][key] for key in ("namespace", "name", "uid")})
    attempt = AttemptRef.of(Identity("default", "hami-scheduler"), ref, started)
    states = {state.id: state for state in states_of(columns)}
    annotations = pod["metadata"].get("annotations") or {}
    circumstances = Circumstances(constraints=constraints_of(annotations, columns.vendors))
    answer = decide(columns, pod, names, policy)
    if isinstance(answer, Decision):
        made = events_of(attempt, answer, started, epoch=LIFE.epoch, circumstances=circumstances)
    else:
        assert isinstance(answer, Failed)
        made = iter([failure_of(attempt, answer, len(names), started, circumstances)])
    events = [event for event in read_back(made) if isinstance(event, AttemptEvent)]
    summary = summarize(events)
    devices = [row for event in events if isinstance(event, DevicesJudged) for row in rows_of(event, states)]
    return DiagnosisFacts("default", ref.namespace, ref.name, started + timedelta(minutes=3), summary, devices=devices)


def rows_of(record: DevicesJudged, states: dict[str, Any]) -> Iterator[DeviceLog]:
    def state_of(node: str, revision: int) -> Any:
        return states.get(state_id(record.cluster, record.scheduler, node, record.epoch, revision))

    for row in record.each_device(state_of):
        yield DeviceLog(container=record.request.container, **row._asdict())


def refusals(attempt: AttemptSummarized) -> dict[str, str]:
    found = {}
    for node, verdict, refusal in zip(attempt.nodes, attempt.verdict, attempt.refusal, strict=True):
        if attempt.verdicts[verdict] in ("refused", "unregistered"):
            why = attempt.refusals[refusal] if refusal >= 0 else Refusal(bare=NODE_UNREGISTERED)
            # The cause is ours: HAMi gives a bare word.
            found[node] = refusal_text(why.model_copy(update={"cause": ""}))
    return found
