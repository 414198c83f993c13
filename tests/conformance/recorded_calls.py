"""Filter calls that HAMi v2.10.0 was asked (tests/conformance/cases), as facts of a diagnosis."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from engine.diagnosis.facts import DiagnosisFacts
from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.events.attempt import AttemptRef, Identity
from engine.fit.events.event_builder import Circumstances, build_events, build_failure
from engine.fit.judge.decide import decide
from engine.fit.judge.decision import Decision, Failed, SchedulingPolicy
from engine.fit.judge.request.pod_annotations import select_constraints
from engine.summaries.fold import summarize
from engine.summaries.text import NODE_UNREGISTERED, write_refusal
from schemas.answers.attempts import DeviceLog
from schemas.events import AttemptEvent, AttemptSummarized, DevicesJudged, PodRef, Refusal
from schemas.events.node_states import build_state_id
from tests.conformance.cluster import build_cluster, get_policy
from tests.conformance.objects import build_pod
from tests.support.harness.states_in_memory import LIFE, build_states, read_back

Case = dict[str, Any]


def build_facts_of_call(case: Case, offered: Sequence[str] = ()) -> DiagnosisFacts:
    """Build the facts that a recorded call of HAMi gives if our scheduler made it; ``offered``: on these nodes."""
    started = datetime.fromisoformat(case["clock"])
    names = offered or case["node_names"]
    return build_facts_of_decision(build_cluster(case), build_pod(case["pod"]), names, get_policy(case), started)


def build_facts_of_decision(
    columns: ClusterColumns, pod: Case, names: Sequence[str], policy: SchedulingPolicy, started: datetime
) -> DiagnosisFacts:
    """Build the facts of our scheduler's decision, three minutes later."""
    ref = PodRef(**{key: pod["metadata"][key] for key in ("namespace", "name", "uid")})
    attempt = AttemptRef.start(Identity("default", "hami-scheduler"), ref, started)
    states = {state.id: state for state in build_states(columns)}
    annotations = pod["metadata"].get("annotations") or {}
    circumstances = Circumstances(constraints=select_constraints(annotations, columns.vendors))
    answer = decide(columns, pod, names, policy)
    if isinstance(answer, Decision):
        records = build_events(attempt, answer, started, epoch=LIFE.epoch, circumstances=circumstances)
    else:
        assert isinstance(answer, Failed)
        records = iter([build_failure(attempt, answer, len(names), started, circumstances)])
    events = [event for event in read_back(records) if isinstance(event, AttemptEvent)]
    summary = summarize(events)
    devices = [row for event in events if isinstance(event, DevicesJudged) for row in list_device_rows(event, states)]
    return DiagnosisFacts("default", ref.namespace, ref.name, started + timedelta(minutes=3), summary, devices=devices)


def list_device_rows(record: DevicesJudged, states: dict[str, Any]) -> Iterator[DeviceLog]:
    def find_state(node: str, revision: int) -> Any:
        return states.get(build_state_id(record.cluster, record.scheduler, node, record.epoch, revision))

    for row in record.iterate_devices(find_state):
        yield DeviceLog(container=record.request.container, **row._asdict())


def list_refusals(attempt: AttemptSummarized) -> dict[str, str]:
    texts = {}
    for node, verdict, refusal in zip(attempt.nodes, attempt.verdict, attempt.refusal, strict=True):
        if attempt.verdicts[verdict] in ("refused", "unregistered"):
            why = attempt.refusals[refusal] if refusal >= 0 else Refusal(bare=NODE_UNREGISTERED)
            # The cause is ours: HAMi gives a bare word.
            texts[node] = write_refusal(why.model_copy(update={"cause": ""}))
    return texts
