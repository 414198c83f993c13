"""Time line of a pod over all layers: created, queued, admitted, tried, bound, allocated, started.

Each moment has the object or record that has its time; a moment without a source is left out. ``list_moments``
collects them of a pod, ``list_workload_moments`` those of a Workload of Kueue, which may have no pod yet.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.diagnosis.facts import DiagnosisFacts, PodOnCluster
from engine.diagnosis.layers import kueue_workloads as kueue
from engine.diagnosis.layers.device_claims import iterate_claims
from engine.diagnosis.layers.statements import REFUSALS
from engine.diagnosis.outcome import Word
from engine.diagnosis.texts import write_phrase
from engine.hami.annotations import ASSIGNED_TIME
from engine.hami.quantities import parse_whole
from engine.snapshot import kinds
from runtime.kubernetes.object_fields import Fields, get_text, iterate_objects, list_conditions, parse_moment
from schemas.answers.diagnosis import TimelineEvent, TimelineMoment
from schemas.codec.records import format_rfc3339

if TYPE_CHECKING:
    from engine.snapshot.case_objects import CaseObjects, ObjectEvent

ORDER: Final[tuple[TimelineEvent, ...]] = (
    "owner created", "queued", "evicted", "quota reserved", "admitted", "released", "created", "tried", "tried again",
    "chosen", "bound", "allocated", "started", "rejected", "ended",
)  # fmt: skip
"""Order of events with equal times: objects have whole seconds."""
_OF_ONE_TRY: Final = timedelta(seconds=5)
"""Limit of the time between the records of one try: the condition has whole seconds, and the event is written later."""
_NO_TIME: Final = timedelta(microseconds=1)
_KUEUE_REPORTERS: Final = "kueue-controller"
_MAX_UNIX_SECONDS: Final = 2**33
_STATUSES: Final = ("initContainerStatuses", "containerStatuses")
_STARTS: Final = (("lastState", "terminated"), ("state", "running"), ("state", "terminated"))
_WORKLOAD_CONDITIONS: Final[dict[str, TimelineEvent]] = {
    "QuotaReserved": "quota reserved", "Admitted": "admitted", "Evicted": "evicted",
}  # fmt: skip


class Moment(NamedTuple):
    """A moment before its text is written; ``tries``: how often the scheduler tried the pod until then."""

    event: TimelineEvent
    time: datetime
    record: str
    subject: str = ""
    """Object that the event is about, such as ``Job/train``, ``ClusterQueue batch`` or a node."""
    tries: int = 1


def build_timeline(moments: Iterable[Moment]) -> list[TimelineMoment]:
    """Build the time line: sorted, with the time from each moment to the next."""
    ordered = sorted(moments, key=_rank_moment)
    previous = [None, *(moment.time for moment in ordered)]
    return [_to_answer(moment, before) for moment, before in zip(ordered, previous, strict=False)]


def _rank_moment(moment: Moment) -> tuple[datetime, int]:
    # Objects have whole seconds and events fractions: within a second, the order of the layers is more certain.
    return moment.time.replace(microsecond=0), ORDER.index(moment.event)


def _to_answer(moment: Moment, before: datetime | None) -> TimelineMoment:
    words: dict[str, Word] = {"subject": moment.subject or "?", "n": moment.tries}
    return TimelineMoment(
        event=moment.event,
        at=format_rfc3339(moment.time),
        after_seconds=round(max((moment.time - before).total_seconds(), 0.0), 3) if before else None,
        text=write_phrase(f"moment_{moment.event.replace(' ', '_')}", **words),
        record=moment.record,
    )


def list_moments(facts: DiagnosisFacts) -> list[Moment]:
    """List the moments of the pod, each event once."""
    pod = facts.pod
    moments = [*_list_attempt_moments(facts)]
    if pod and not pod.is_gone and facts.is_latest:
        moments += [*_list_owner_moments(facts, pod), *_list_pod_moments(facts, pod)]
    return _merge(moments)


def _merge(moments: Iterable[Moment]) -> list[Moment]:
    """Keep one moment of each event: the earliest try, the latest repetition, else that of the first source."""
    merged: dict[TimelineEvent, Moment] = {}
    for moment in moments:
        former = merged.setdefault(moment.event, moment)
        if moment.event == "tried" and moment.time < former.time:
            merged["tried"] = moment
        if moment.event == "tried again":
            later = max(former, moment, key=lambda entry: entry.time)
            merged["tried again"] = later._replace(tries=max(former.tries, moment.tries))
    _drop_tries_before(merged, merged.get("released"))
    tried, again = merged.get("tried"), merged.get("tried again")
    if tried and again and again.time - tried.time < (_OF_ONE_TRY if again.tries <= 1 else _NO_TIME):
        del merged["tried again"]
    return list(merged.values())


def _drop_tries_before(merged: dict[TimelineEvent, Moment], released: Moment | None) -> None:
    """Drop a first try before the gate was removed: the condition has had its status since the gate was there."""
    tried = merged.get("tried")
    if released and tried and tried.time.replace(microsecond=0) < released.time.replace(microsecond=0):
        del merged["tried"]
        if again := merged.get("tried again"):
            merged["tried"] = again._replace(event="tried", tries=1)


def list_workload_moments(objects: "CaseObjects", workload: Fields) -> Iterator[Moment]:
    """List the moments of a Workload of Kueue: queued, evicted, quota reserved, admitted."""
    namespace, name = get_text(workload, "metadata", "namespace"), get_text(workload, "metadata", "name")
    record = f"/apis/{kueue.DOMAIN}/v1beta2/namespaces/{namespace}/workloads/{name}"
    queue = get_text(workload, "spec", "queueName")
    if created := parse_moment(get_text(workload, "metadata", "creationTimestamp")):
        yield Moment("queued", created, record, queue)
    for condition in list_conditions(workload):
        event = _WORKLOAD_CONDITIONS.get(condition.type)
        if event and condition.status == "True" and condition.last_transition_at:
            yield Moment(event, condition.last_transition_at, record, _name_subject(event, workload, condition.reason))
    # A condition that is false again no longer has the time; its event has, for an hour.
    for entry in objects.select_events("Workload", name, namespace):
        if entry.reason.startswith("EvictedDueTo") and entry.time:
            yield Moment("evicted", entry.time, record, entry.reason.removeprefix("EvictedDueTo"))


def _name_subject(event: TimelineEvent, workload: Fields, reason: str) -> str:
    return reason if event == "evicted" else get_text(workload, "status", "admission", "clusterQueue")


def list_object_moments(objects: "CaseObjects", kind: str, name: str, namespace: str) -> Iterator[Moment]:
    """List the moments of an owner: its creation, and when its queue let it go."""
    subject, record = f"{kind}/{name}", f"{kind} {namespace}/{name}"
    for table in objects.tables:
        entry = objects.find(table, name, namespace) if table.partition(".")[0] == kind else None
        if entry and (created := parse_moment(get_text(entry, "metadata", "creationTimestamp"))):
            yield Moment("owner created", created, record, subject)
    yield from _list_releases(objects.select_events(kind, name, namespace), record, subject)


def _list_releases(events: Sequence["ObjectEvent"], record: str, subject: str) -> Iterator[Moment]:
    """List the latest event with which Kueue resumes a Job or removes the gate of a pod."""
    for event in events:
        if event.reason == "Started" and event.reporter.endswith(_KUEUE_REPORTERS) and event.time:
            yield Moment("released", event.time, record, subject)
            return


def _list_owner_moments(facts: DiagnosisFacts, pod: PodOnCluster) -> Iterator[Moment]:
    objects = facts.objects
    if objects is None:
        return
    if workload := kueue.find_workload(facts):
        yield from list_workload_moments(objects, workload.object)
    yield from _list_releases(
        objects.select_events("Pod", facts.name, facts.namespace, pod.uid), pod.source.record, f"Pod/{facts.name}"
    )
    if pod.owners:
        kind, _, name = pod.owners[0].partition("/")
        yield from list_object_moments(objects, kind, name, facts.namespace)


def _list_attempt_moments(facts: DiagnosisFacts) -> Iterator[Moment]:
    attempt = facts.attempt
    if attempt is None:
        return
    record, count = attempt.attempt_id, attempt.attempts or 1
    yield Moment("tried", attempt.first_judged_at or attempt.started_at, record, attempt.scheduler)
    yield Moment("tried again", attempt.started_at, record, attempt.scheduler, count)
    if attempt.chosen and attempt.ended_at:
        yield Moment("chosen", attempt.ended_at, record, attempt.chosen)
    if attempt.bind and attempt.bind.bound:
        yield Moment("bound", attempt.bind.ended_at, record, attempt.bind.node)


def _list_pod_moments(facts: DiagnosisFacts, pod: PodOnCluster) -> Iterator[Moment]:
    record = pod.source.record
    if pod.created_at:
        yield Moment("created", pod.created_at, record, f"Pod/{facts.name}")
    yield from _list_tries(facts, pod)
    scheduled = pod.find_condition("PodScheduled")
    if scheduled and scheduled.status == "True" and scheduled.last_transition_at:
        yield Moment("bound", scheduled.last_transition_at, record, pod.node)
    yield from _list_allocations(facts, pod)
    entry = facts.objects.find(kinds.POD, facts.name, facts.namespace) if facts.objects else None
    if entry:
        yield from _list_container_moments(entry, record, pod.node)
    target = pod.find_condition("DisruptionTarget")
    if target and target.status == "True" and target.last_transition_at:
        yield Moment("rejected", target.last_transition_at, record, pod.node)
    if pod.phase == "Failed" and (refused := [problem.at for problem in pod.problems if problem.reason == pod.reason]):
        yield Moment("rejected", max(refused), record, pod.node)


def _list_tries(facts: DiagnosisFacts, pod: PodOnCluster) -> Iterator[Moment]:
    """List the first and the latest refusal of the pod's scheduler that events and the condition tell of."""
    events = facts.objects.select_events("Pod", facts.name, facts.namespace, pod.uid) if facts.objects else []
    refusals = [event for event in events if event.reason in REFUSALS and event.reporter in ("", pod.scheduler)]
    first = min((event.first_time for event in refusals if event.first_time), default=None)
    last = max((event.time for event in refusals if event.time), default=None)
    condition = pod.find_condition("PodScheduled")
    if condition and condition.status == "False" and condition.reason == "Unschedulable":
        first = min((time for time in (first, condition.last_transition_at) if time), default=None)
    if first:
        yield Moment("tried", first, pod.source.record, pod.scheduler)
    if last:
        count = sum(event.count for event in refusals)
        yield Moment("tried again", last, pod.source.record, pod.scheduler, count)


def _list_allocations(facts: DiagnosisFacts, pod: PodOnCluster) -> Iterator[Moment]:
    """List when HAMi's filter chose the node, and when the DRA allocator took devices for a claim."""
    for name, claim in iterate_claims(facts):
        if time := parse_moment(get_text(claim, "status", "allocation", "allocationTimestamp")):
            yield Moment("allocated", time, f"ResourceClaim {facts.namespace}/{name}", name)
    chosen = parse_whole(pod.annotations.get(ASSIGNED_TIME, ""))
    if chosen and 0 < chosen < _MAX_UNIX_SECONDS:
        yield Moment("chosen", datetime.fromtimestamp(chosen, UTC), pod.source.record, pod.node)


def _list_container_moments(pod: Fields, record: str, node: str) -> Iterator[Moment]:
    containers = [entry for kind in _STATUSES for entry in iterate_objects(pod, "status", kind)]
    starts = [
        time for entry in containers for path in _STARTS if (time := parse_moment(get_text(entry, *path, "startedAt")))
    ]
    if starts:
        yield Moment("started", min(starts), record, node)
    ends = [parse_moment(get_text(entry, "state", "terminated", "finishedAt")) for entry in containers]
    if get_text(pod, "status", "phase") in ("Succeeded", "Failed") and (times := [time for time in ends if time]):
        yield Moment("ended", max(times), record, node)
