"""Attempts that another source reports too: what is published of them, and when that is not certain."""

from datetime import timedelta
from typing import Any

import orjson

from engine.summaries.answer import build_schedulerlog
from engine.summaries.fold import summarize
from engine.summaries.foreign_namespaces import KnownNamespaces
from engine.summaries.messages import build_messages, list_messages
from ingest.readers.kube import KubeEvents
from pipeline.kube_events.event_object import make_event
from runtime.kafka.record import RecordPosition
from schemas.codec.records import EncodedRecord
from schemas.events import AttemptEvent, AttemptSummarized, LockHolder, PodRef
from schemas.topics import ATTEMPT_COUNTS, ATTEMPTS, DEVICE_VERDICTS, MESSAGES, POD_HISTORIES
from tests.support.builders.api_server_objects import an_event, read
from tests.support.builders.attempts import STARTED, a_bind, an_attempt
from tests.support.fakes.topics import FakeTopics, Log, list_published
from tests.support.harness.worker_in_memory import a_worker

REFUSING = {"node1": [["NumaNotFit", "CardCordoned"]], "node2": [["CardCordoned"]]}
PLACED = {"node1": [["picked", "fits"]], "node2": [["CardCordoned"]]}
TEXT = "0/2 nodes are available: 1 1/2 CardCordoned, 1 NodeInsufficientDevice."


def report_by_scheduler(seconds: float = 0, devices: Any = None, **fields: Any) -> list[AttemptEvent]:
    """Report a try of the one pod, so long after the first."""
    started = STARTED + timedelta(seconds=seconds)
    common: dict[str, Any] = {"attempt_id": f"scheduler-{seconds:g}", "started_at": started, "pod": POD}
    events = an_attempt(devices or REFUSING, **common | fields)
    return [*events[:-1], events[-1].model_copy(update={"ended_at": started + timedelta(milliseconds=13)})]


POD = PodRef(namespace="ml", name="gpu8", uid="uid-gpu8")


def report_by_events(*seconds: float, text: str = TEXT) -> list[AttemptEvent]:
    """Read kube-scheduler's events at these times as ``kube-events`` does."""
    times = [(STARTED + timedelta(seconds=second)).isoformat().replace("+00:00", "Z") for second in seconds]
    events = [an_event("FailedScheduling", text, time=time, scheduler="hami-scheduler") for time in times]
    return [result for result in read(*(("event", event) for event in events)) if isinstance(result, AttemptEvent)]


async def on_topics(*reports: list[AttemptEvent]) -> FakeTopics:
    topics, log = FakeTopics(), Log()
    for events in reports:
        log.append(*events)
    async with a_worker(topics) as worker:
        await worker.read(*log.records)
    return topics


async def publish_reports(*reports: list[AttemptEvent]) -> list[AttemptSummarized]:
    return sorted(list_published(await on_topics(*reports)).values(), key=lambda attempt: attempt.started_at)


async def test_kube_schedulers_own_event_about_a_refused_pod_leaves_the_answer_as_it_was() -> None:
    alone = summarize(report_by_scheduler())
    (attempt,) = await publish_reports(report_by_scheduler(), report_by_events(0.1))
    assert build_schedulerlog(attempt) == build_schedulerlog(alone)
    assert [(report.source, report.gives) for report in attempt.reports] == [
        ("scheduler", ["filter", "requests", "offered nodes", "policies"]), ("kube-events", ["scheduler message"]),
    ]  # fmt: skip
    assert (attempt.complete, attempt.scheduler_message) == (True, TEXT)
    assert attempt.version > alone.version


async def test_the_event_of_the_cluster_that_comes_first_is_the_same_attempt() -> None:
    topics = await on_topics(report_by_events(0.1), report_by_scheduler())
    (attempt,) = list_published(topics).values()
    assert attempt.attempt_id == report_by_events(0.1)[0].attempt_id
    assert build_schedulerlog(attempt) == build_schedulerlog(summarize(report_by_scheduler()))
    rows = topics.list_events(DEVICE_VERDICTS.name)
    assert {(row.attempt_id, row.started_at) for row in rows} == {(attempt.attempt_id, attempt.started_at)}
    assert sum(len(row.verdict) for row in rows) == 3


async def test_a_message_is_published_once_and_changed_words_count_for_the_same_attempt() -> None:
    topics = await on_topics(report_by_scheduler(), report_by_events(0.1))
    assert topics.list_events(MESSAGES.name) == build_messages(summarize(report_by_scheduler()))
    topics = await on_topics(report_by_events(0.1), report_by_scheduler())
    assert len({(event.attempt_id, event.reported_at) for event in topics.list_events(MESSAGES.name)}) == 1


async def test_events_that_this_project_wrote_are_no_decisions() -> None:
    """The review's reproduction: of 10 nodes with 4 refusals the answer became one of 6 nodes without any."""
    lines = list_messages(summarize(report_by_scheduler()))
    reader = KubeEvents()
    bodies = [make_event("own", [line], KnownNamespaces()) for line in lines]
    assert [event for body in bodies for event in reader.read_object("event", body, 0.0)] == []
    assert reader.close() == []
    assert reader.counts.lines["noise"] == len(lines)


async def test_a_report_about_one_of_two_tries_at_once_is_published_apart_and_names_both() -> None:
    first, second = report_by_scheduler(0), report_by_scheduler(0.2)
    attempts = await publish_reports(first, second, report_by_events(0.6))
    assert [[report.source for report in attempt.reports] for attempt in attempts] == [
        ["scheduler"], ["scheduler"], ["kube-events"],
    ]  # fmt: skip
    assert attempts[2].may_duplicate == ["scheduler-0.2", "scheduler-0"]
    assert [attempt.may_duplicate for attempt in attempts[:2]] == [[], []]


async def test_of_two_tries_a_second_apart_the_one_before_the_event_is_meant() -> None:
    attempts = await publish_reports(report_by_scheduler(0), report_by_scheduler(1.5), report_by_events(1.55))
    assert [len(attempt.reports) for attempt in attempts] == [1, 2]


async def test_events_of_tries_that_follow_each_other_at_once_are_about_the_one_before_each() -> None:
    """Tries measured on a real control plane, where kube-scheduler tried a pod twice within a tenth of a second."""
    attempts = await publish_reports(report_by_scheduler(0), report_by_scheduler(0.087), report_by_events(0.049, 0.231))
    assert [[report.source for report in attempt.reports] for attempt in attempts] == [["scheduler", "kube-events"]] * 2
    assert not any(attempt.may_duplicate for attempt in attempts)


async def test_a_scheduler_and_its_log_agree_on_the_time_however_fast_the_tries_follow_each_other() -> None:
    seconds = [number * 0.3 for number in range(8)]
    logged = [
        [
            event.model_copy(update={"reader": "hami-log", "attempt_id": f"log-{second:g}"})
            for event in report_by_scheduler(second)[1:]
        ]
        for second in seconds
    ]
    decided = [report_by_scheduler(second) for second in seconds]
    for reports in ([*decided, *logged], [*logged, *reversed(decided)]):
        attempts = await publish_reports(*reports)
        assert len(attempts) == len(seconds)
        for attempt in attempts:
            assert {report.attempt_id.partition("-")[2] for report in attempt.reports} == {
                f"{_derive_seconds(attempt):g}"
            }


def _derive_seconds(attempt: AttemptSummarized) -> float:
    return round((attempt.started_at - STARTED).total_seconds(), 3)


async def test_a_report_that_contradicts_is_about_another_try() -> None:
    attempts = await publish_reports(report_by_scheduler(0, PLACED, chosen="node1"), report_by_events(0.1))
    assert [attempt.chosen for attempt in attempts] == ["node1", None]
    assert not any(attempt.may_duplicate for attempt in attempts)


async def test_another_pod_of_the_name_and_another_cluster_are_other_attempts() -> None:
    again = report_by_scheduler(pod=POD.model_copy(update={"uid": "uid-made-later"}))
    west = report_by_scheduler(cluster="west")
    renamed = [event.model_copy(update={"attempt_id": f"again-{event.attempt_id}"}) for event in again]
    elsewhere = [event.model_copy(update={"attempt_id": f"west-{event.attempt_id}"}) for event in west]
    for other in (renamed, elsewhere):
        assert [len(attempt.reports) for attempt in await publish_reports(other, report_by_events(0.1))] == [1, 1]


async def test_a_failure_after_the_filter_that_only_the_cluster_reports_is_the_result_of_the_bind() -> None:
    placed = report_by_scheduler(0, PLACED, chosen="node1")
    error = 'running PreBind plugin "VolumeBinding": binding volumes: timed out'
    for reports in ([placed, report_by_events(0.5, text=error)], [report_by_events(0.5, text=error), placed]):
        (attempt,) = await publish_reports(*reports)
        assert (attempt.status, attempt.chosen, attempt.error) == ("failed", "node1", "")
        assert attempt.bind
        assert (attempt.bind.bound, attempt.bind.error) == (False, error)


async def test_a_bind_that_the_scheduler_reports_later_goes_to_its_attempt_and_keeps_the_locks_holder() -> None:
    placed = report_by_scheduler(0, PLACED, chosen="node1")
    head = {name: getattr(placed[0], name) for name in ("attempt_id", "started_at", "pod")}
    holder = LockHolder(pod="ml/other", locked_at=STARTED)
    bind = a_bind(bound=False, error="locked", lock_holder=holder, **head)
    # The event knows that the lock was held, and not by whom.
    text = "running Bind plugin: node node1 has been locked within 5m0s"
    (attempt,) = await publish_reports(report_by_events(0.1, text=text), placed, [bind])
    assert attempt.bind
    assert (attempt.bind.error, attempt.bind.lock_holder) == ("locked", holder)
    assert [report.source for report in attempt.reports] == ["scheduler", "kube-events"]


async def test_the_first_try_that_is_known_is_in_every_later_one() -> None:
    topics = await on_topics(
        report_by_scheduler(0), report_by_scheduler(60, PLACED, chosen="node1"), report_by_events(0.1)
    )
    first, *_, second = [event for event in topics.list_events(ATTEMPTS.name) if isinstance(event, AttemptSummarized)]
    assert {first.first_judged_at, second.first_judged_at} == {STARTED}


async def test_a_retry_is_a_repetition_before_and_after_the_cluster_reports_it() -> None:
    reports = [report_by_scheduler(0), report_by_events(0.1), report_by_scheduler(60), report_by_events(60.1)]
    topics = await on_topics(*reports)
    kinds = [(type(event).__name__, len(event.reports)) for event in topics.list_events(ATTEMPTS.name)]
    assert kinds == [
        ("AttemptSummarized", 1), ("AttemptSummarized", 2), ("AttemptRepeated", 1), ("AttemptRepeated", 2),
    ]  # fmt: skip
    assert len({attempt.episode for attempt in list_published(topics).values()}) == 1


class FormerTopics(FakeTopics):
    """Topics as a worker writes them that counts no obstacle: mapping version 9 and before."""

    def __init__(self) -> None:
        super().__init__()
        self.is_former = True

    def _append(self, entry: EncodedRecord) -> RecordPosition:
        if self.is_former and entry.topic == POD_HISTORIES.name and entry.value:
            history = orjson.loads(entry.value)
            assert remove_fields(history, "obstacle"), "the record has the obstacle that this version counts"
            entry = entry._replace(value=orjson.dumps(history))
        return super()._append(entry)


def remove_fields(value: Any, name: str) -> int:
    """Remove the fields of that name at any depth. Returns their number."""
    if isinstance(value, list):
        return sum(remove_fields(item, name) for item in value)
    if not isinstance(value, dict):
        return 0
    return (value.pop(name, None) is not None) + sum(remove_fields(item, name) for item in value.values())


def list_counted(contribution: Any) -> set[tuple[str, str]]:
    return set(zip(contribution.dimension, contribution.value, strict=True))


async def test_an_attempt_that_a_former_worker_counted_without_an_obstacle_is_taken_back_without_one() -> None:
    topics, log = FormerTopics(), Log()
    log.append(*report_by_scheduler())
    async with a_worker(topics) as worker:
        await worker.read(*log.records)
    (first,) = topics.list_events(ATTEMPT_COUNTS.name)
    topics.is_former = False
    former, decisive = len(log.records), [pair for pair in list_counted(first.adds) if pair[0] == "obstacle"]
    assert decisive == [("obstacle", "CardCordoned")]
    log.append(*report_by_events(0.1))
    async with a_worker(topics) as worker:
        await worker.read(*log.records[former:])
    _, second = topics.list_events(ATTEMPT_COUNTS.name)
    assert list_counted(second.replaces) == list_counted(first.adds) - set(decisive)
    assert list_counted(second.adds) == list_counted(first.adds)
