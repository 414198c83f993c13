"""Watches of the whole application: what is sent, from which place on, and when it ends."""

import asyncio
import math
from datetime import timedelta
from typing import Any
from unittest import mock

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.http.json_protocol import ABORT
from api.http.sealing import POSITION_SEAL
from api.http.watch_query import parse_version, to_version
from api.memory.change_log import ChangeLog
from api.memory.wait_log import State
from api.watch.views import Decoded, DecodedState, decode_state
from engine.summaries.named_pods import HIDDEN_POD
from schemas.answers.attempts import AttemptFound, SchedulerLog
from schemas.answers.base import WatchEvent
from schemas.answers.waiting import PodWaiting
from schemas.events import AttemptSummarized, BindOutcome, Owner, PodDescription, PodObserved, PodRef, PodWait
from tests.support.builders.events import STARTED, a_repetition, a_summary, a_workload_observed
from tests.support.fakes.reviews import Grant
from tests.support.harness.api_app import POD, Caller, hold
from tests.support.harness.guarded_api import READS_LLM, Guarded
from tests.support.harness.watching import WrittenTopic, list_types, parse_lines, wait_until
from tests.support.stress import IS_STRESS

PATH = POD + "?watch=true"
ATTEMPTS, PENDING = "/api/v1/schedulerlogs?watch=true", "/api/v1/pending?watch=true"
NEXT = "&sendInitialEvents=false"


def an_attempt(number: int = 0, pod: str = "deepseek-a", namespace: str = "llm", **fields: Any) -> AttemptSummarized:
    """The pod's attempt ``number`` minutes after its first."""
    started = STARTED + timedelta(minutes=number)
    plain: dict[str, Any] = {
        "attempt_id": f"{number:02x}{pod.encode().hex():0>30}"[:32],
        "pod": PodRef(namespace=namespace, name=pod, uid=f"uid-{pod}"),
        "started_at": started,
        "ended_at": started,
        "version": int(started.timestamp() * 1e6),
    }
    return a_summary(**plain | fields)


def a_placed_attempt(number: int = 0, pod: str = "deepseek-a") -> AttemptSummarized:
    later = an_attempt(number, pod)
    bind = BindOutcome(node="node1", bound=True, ended_at=later.started_at)
    return an_attempt(number, pod, status="succeeded", chosen="node1", bind=bind, version=later.version + 1)


APPLICATION = Caller()


PENDING_OF_LLM = PENDING + "&namespace=llm"
GATED = PodDescription(owners=[Owner(kind="Job", name="train")], queue="blue", created_at=STARTED)
HELD = PodWait(
    code="QueueHeld", layer="queue", sentence_en="Queue blue is held.", sentence_zh="队列 blue 已暂停。", devices=8,
    models=[], pools=[], nearest_nodes=[], reasons={},
)  # fmt: skip


def observe(minute: int, pod: str = "deepseek-a", **fields: Any) -> PodObserved:
    """Observe the pod ``minute`` minutes after its first attempt."""
    plain: dict[str, Any] = {
        "cluster": "default",
        "pod": PodRef(namespace="llm", name=pod, uid=f"uid-{pod}"),
        "observed_at": STARTED + timedelta(minutes=minute, microseconds=1),
        "phase": "Pending",
        "description": GATED,
    }
    return PodObserved(**plain | fields)


def list_changes(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["name"]) for event in events]


async def test_a_pod_that_no_scheduler_tries_is_watched_from_its_wait_to_its_start(topic: WrittenTopic) -> None:
    topic.publish(observe(0, wait=HELD))
    events = await topic.read_events(
        PENDING_OF_LLM, observe(1, "b", wait=HELD), observe(2, node="node1"), observe(3, "b", deleted=True),
        observe(4, phase="Running", node="node1"),
    )  # fmt: skip
    assert list_changes(events) == [
        ("ADDED", "deepseek-a"),
        ("ADDED", "b"),
        ("DELETED", "deepseek-a"),
        ("DELETED", "b"),
    ]
    for event in events:
        WatchEvent.model_validate(event)
    fields = {name: value for name, value in events[0]["object"].items() if name in PodWaiting.model_fields}
    waiting = PodWaiting.model_validate(fields)
    assert (waiting.obstacle and waiting.obstacle.sentence.zh, waiting.layer) == ("队列 blue 已暂停。", "queue")
    assert (waiting.workload, waiting.queue, waiting.devices) == ("Job/train", "blue", 8)
    assert not waiting.attempt
    assert set(events[2]["object"]) == {
        "kind",
        "apiVersion",
        "metadata",
        "namespace",
        "name",
        "attempt",
        "schedulerlog",
    }


async def test_the_latest_of_attempt_and_observation_says_how_a_pod_waits(topic: WrittenTopic) -> None:
    topic.publish(observe(0, wait=HELD))
    events = await topic.read_events(
        PENDING_OF_LLM + NEXT,
        an_attempt(2),
        observe(1, wait=HELD),
        an_attempt(3),
        observe(4, deleted=True),
        an_attempt(3),
    )
    # The observation of the first minute came late, and so did the attempt of a pod that is gone.
    assert list_types(events) == ["MODIFIED", "MODIFIED", "DELETED"]
    assert [bool(event["object"].get("reasons")) for event in events] == [True, True, False]


async def test_a_watch_of_pending_pods_resumes_in_both_topics(topic: WrittenTopic) -> None:
    events = await topic.read_events(
        PENDING_OF_LLM + NEXT, observe(1, wait=HELD), an_attempt(2, "b"), observe(3, "c", wait=HELD)
    )
    versions = [event["object"]["metadata"]["resourceVersion"] for event in events]
    assert versions == ["0.1.0.0", "1.1.0.0", "1.2.0.0"]
    topic.publish(observe(4, node="node1"), partition=1)
    resumed = await topic.read_events(f"{PENDING_OF_LLM}&resourceVersion={versions[1]}", an_attempt(5, "b"))
    assert list_changes(resumed) == [("ADDED", "c"), ("DELETED", "deepseek-a"), ("MODIFIED", "b")]


async def test_a_position_of_attempts_is_none_of_pending_pods(topic: WrittenTopic) -> None:
    topic.publish(an_attempt())
    answer = await topic._caller.get(PENDING + "&resourceVersion=1.0")
    assert (answer.status_code, answer.json()["code"]) == (410, "Expired")


async def test_pending_pods_are_not_watched_while_observations_are_not_followed(topic: WrittenTopic) -> None:
    topic._caller.app.state.pods_topic.replayed = False
    answer = await topic._caller.get(PENDING)
    assert (answer.status_code, "topic of pods" in answer.json()["error"]) == (503, True)
    assert await topic.read_events(ATTEMPTS, an_attempt()), "attempts are"


async def test_untried_pods_are_narrowed_by_their_queue(topic: WrittenTopic) -> None:
    events = await topic.read_events(PENDING_OF_LLM + "&queue=red", observe(1, wait=HELD))
    # Memory does not have its earlier state, which may have been of that queue.
    assert list_types(events) == ["DELETED"]
    assert list_changes(await topic.read_events(PENDING_OF_LLM + "&queue=blue&workload=Job/train")) == [
        ("ADDED", "deepseek-a")
    ]


async def test_a_workload_without_pods_is_watched_too(topic: WrittenTopic) -> None:
    waiting = a_workload_observed(namespace="llm", wait=HELD)
    over = waiting.model_copy(
        update={"observed_at": waiting.observed_at + timedelta(minutes=1), "wait": None, "is_over": True}
    )
    events = await topic.read_events(PENDING_OF_LLM, waiting, over)
    assert list_types(events) == ["ADDED", "DELETED"]
    name = f"{waiting.workload.kind.lower()}/{waiting.workload.name}"
    assert [event["object"]["name"] for event in events] == [name, name]
    assert [event["object"]["schedulerlog"] for event in events] == ["", ""]


@pytest.fixture
def topic() -> WrittenTopic:
    return WrittenTopic(Caller())


async def test_a_pod_is_watched_from_its_latest_attempt_on(topic: WrittenTopic) -> None:
    topic.publish(an_attempt(), an_attempt(0, "other"))
    events = await topic.read_events(PATH, an_attempt(1), an_attempt(1, "other"), a_placed_attempt(1))
    assert list_types(events) == ["ADDED", "MODIFIED", "MODIFIED"]
    assert [change["object"]["status"] for change in events] == ["failed", "failed", "succeeded"]
    for event in events:
        WatchEvent.model_validate(event)
        schedulerlog = event["object"]
        assert (schedulerlog.pop("kind"), schedulerlog.pop("apiVersion")) == (
            "SchedulerLog",
            "schedulerlog.io/v1alpha1",
        )
        assert schedulerlog.pop("metadata")["name"] == "deepseek-a"
        SchedulerLog.model_validate(schedulerlog)


async def test_the_object_is_the_answer_without_watch(topic: WrittenTopic) -> None:
    caller = topic._caller
    [event] = await topic.read_events(PATH + NEXT, an_attempt(1))
    answer = (await caller.get(POD)).json()
    assert {name: event["object"][name] for name in answer} == answer


async def test_a_watch_resumes_behind_the_last_event(topic: WrittenTopic) -> None:
    first, second = await topic.read_events(PATH + NEXT, an_attempt(1), an_attempt(2))
    for number in (3, 4):
        topic.publish(an_attempt(number), an_attempt(number, "other"))
    version = second["object"]["metadata"]["resourceVersion"]
    resumed = await topic.read_events(f"{PATH}&resourceVersion={version}", an_attempt(5))
    assert [find_minute(event, topic) for event in resumed] == [3, 4, 5]
    again = await topic.read_events(f"{PATH}&resourceVersion={first['object']['metadata']['resourceVersion']}")
    assert len(again) == 4
    assert [event["object"] for event in again[1:]] == [event["object"] for event in resumed]


def find_minute(event: dict[str, Any], topic: WrittenTopic) -> int:
    """Find the minute of the attempt that an event shows, by its position in the log."""
    version = event["object"]["metadata"]["resourceVersion"]
    shown_change = next(change for change in topic.changes._changes.values() if to_version(change.offsets) == version)
    return round((shown_change.attempt.started_at - STARTED.timestamp()) / 60)


async def test_a_place_is_that_of_every_partition(topic: WrittenTopic) -> None:
    topic.publish(an_attempt(1), partition=0)
    topic.publish(an_attempt(1, "other"), partition=1)
    topic.publish(an_attempt(2), partition=0)
    events = await topic.read_events(ATTEMPTS + "&resourceVersion=1.0")
    assert [event["object"]["metadata"]["resourceVersion"] for event in events] == ["1.1", "2.1"]
    assert [event["object"]["name"] for event in events] == ["other", "deepseek-a"]


async def test_a_place_that_memory_no_longer_has_is_gone(topic: WrittenTopic) -> None:
    topic.changes._max_count = 2
    topic.publish(*(an_attempt(number) for number in range(4)))
    answer = await topic._caller.get(PATH + "&resourceVersion=1.0")
    assert (answer.status_code, answer.json()["code"]) == (410, "Expired")
    assert len(await topic.read_events(PATH + "&resourceVersion=2.0")) == 2


async def test_a_place_of_another_topic_is_gone(topic: WrittenTopic) -> None:
    answer = await topic._caller.get(PATH + "&resourceVersion=0.0.0")
    assert answer.status_code == 410


async def test_a_replica_that_is_behind_says_so(topic: WrittenTopic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.watch.events._BEHIND_SECONDS", 0.05)
    answer = await topic._caller.get(PATH + "&resourceVersion=99.0")
    assert answer.status_code == 503
    assert "this replica" in answer.json()["error"]


async def test_a_replica_that_is_behind_waits_no_longer_than_the_watch_was_to_last(
    topic: WrittenTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.watch.events._BEHIND_SECONDS", math.inf)
    answer = await topic._caller.get(PATH + "&resourceVersion=99.0&timeoutSeconds=1")
    assert answer.status_code == 503


async def test_a_reader_that_is_too_slow_ends_with_an_error(topic: WrittenTopic) -> None:
    log: ChangeLog = topic.changes
    log._max_count = 3
    topic.publish(an_attempt())

    watch = asyncio.ensure_future(topic._caller.get(PATH + NEXT))
    await wait_until(lambda: log.subscribers > 0)
    # All at once: nothing is read in between.
    topic.publish(*(an_attempt(number) for number in range(1, 6)))
    events = parse_lines(await watch)
    assert list_types(events) == ["ERROR"]
    status = events[0]["object"]
    assert (status["kind"], status["code"], status["reason"]) == ("Status", 410, "Expired")


async def test_a_topic_that_was_created_again_ends_every_watch(topic: WrittenTopic) -> None:
    log = topic.changes
    subscription = log.subscribe(("default",), None)
    log.begin({0: 0, 1: 0}, set())
    assert not subscription.is_lost
    topic.publish(an_attempt())
    log.begin({0: 0, 1: 0}, {0, 1})
    assert subscription.is_lost
    assert log.offsets == (0, 0)


async def test_attempts_are_watched_by_namespace_and_narrowed(topic: WrittenTopic) -> None:
    topic.publish(an_attempt(), an_attempt(0, "b", "other"))
    events = await topic.read_events(
        ATTEMPTS + "&namespace=llm", an_attempt(1), an_attempt(1, "b", "other"), a_placed_attempt(1)
    )
    assert list_types(events) == ["ADDED", "ADDED", "MODIFIED"]
    for event in events:
        fields = {name: value for name, value in event["object"].items() if name in AttemptFound.model_fields}
        assert AttemptFound.model_validate(fields).namespace == "llm"
    failed = await topic.read_events(
        ATTEMPTS + NEXT + "&namespace=llm&status=failed&pod=c",
        an_attempt(1, "c"),
        an_attempt(2),
        a_placed_attempt(1, "c"),
    )
    assert list_types(failed) == ["ADDED", "DELETED"]


async def test_a_narrowing_word_is_compared_as_a_whole(topic: WrittenTopic) -> None:
    described = an_attempt(1, description=PodDescription(queue="gold"))
    reasons = ATTEMPTS + NEXT + "&reason=CardInsufficientMemory&queue=gold"
    assert len(await topic.read_events(reasons, described)) == 1
    assert await topic.read_events(ATTEMPTS + NEXT + "&queue=gol", an_attempt(2)) == []


async def test_pending_pods_come_and_go(topic: WrittenTopic) -> None:
    topic.publish(an_attempt(), a_placed_attempt(0, "b"))
    events = await topic.read_events(
        PENDING, an_attempt(1), an_attempt(1, "c"), a_placed_attempt(1), a_placed_attempt(1, "b")
    )
    assert [(event["type"], event["object"]["name"]) for event in events] == [
        ("ADDED", "deepseek-a"),
        ("MODIFIED", "deepseek-a"),
        ("ADDED", "c"),
        ("DELETED", "deepseek-a"),
    ]
    fields = {name: value for name, value in events[0]["object"].items() if name in PodWaiting.model_fields}
    PodWaiting.model_validate(fields)


async def test_a_retry_is_shown_although_memory_has_forgotten_what_it_repeats(topic: WrittenTopic) -> None:
    retry = a_repetition(version=5, wait=HELD)
    [event] = await topic.read_events(ATTEMPTS, retry)
    assert event["object"]["obstacle"] == HELD.code
    assert event["object"]["summary"] == retry.text
    assert event["object"]["reasons"] == ["CardInsufficientMemory"]
    [waiting] = await topic.read_events(PENDING + "&resourceVersion=0.0.0.0")
    assert waiting["object"]["reasons"] == ["CardInsufficientMemory"]


async def test_a_pods_watch_reads_from_the_index_what_memory_has_forgotten() -> None:
    stored = a_summary(version=5, ended_at=STARTED)
    topic = WrittenTopic(Caller(hold(stored)))
    [event] = await topic.read_events(PATH + NEXT, a_repetition(version=5))
    assert event["object"]["filter"]["nodes"][0]["name"] == "node1"


async def test_bookmarks_say_how_far_the_watch_has_come(topic: WrittenTopic) -> None:
    topic.publish(an_attempt())
    path = PATH + "&allowWatchBookmarks=true&timeoutSeconds=1"
    events = await topic.read_events(path, an_attempt(1), an_attempt(2, "other"))
    assert list_types(events) == ["ADDED", "BOOKMARK", "MODIFIED", "BOOKMARK"]
    assert events[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert events[3]["object"]["metadata"]["resourceVersion"] == "3.0"


async def test_server_sent_events_have_their_place_as_id(topic: WrittenTopic) -> None:
    accept = {"accept": "text/event-stream"}
    answer = await topic.watch(PATH + NEXT, an_attempt(1), an_attempt(2), **accept)
    assert answer.headers["content-type"].startswith("text/event-stream")
    ids, data = zip(*(event.split("\n", 1) for event in answer.text.strip().split("\n\n")), strict=True)
    assert ids == ("id: 1.0", "id: 2.0", "id: 2.0")
    assert all(line.startswith('data: {"type":') for line in data)
    resumed = await topic.watch(PATH, **accept, **{"last-event-id": "1.0"})
    assert resumed.text.startswith("id: 2.0\n")


async def test_only_behind_the_last_initial_event_a_watch_may_continue(topic: WrittenTopic) -> None:
    topic.publish(*(an_attempt(0, pod) for pod in ("a", "b", "c")))
    events = await topic.read_events(ATTEMPTS)
    assert [event["object"]["metadata"]["resourceVersion"] for event in events] == ["0", "0", "3.0"]
    frames = (await topic.watch(ATTEMPTS, accept="text/event-stream")).text.strip().split("\n\n")
    assert [frame.startswith("id: 3.0") for frame in frames] == [False, False, True, True, True]


async def test_what_many_watch_is_made_once(topic: WrittenTopic) -> None:
    watches = [asyncio.ensure_future(topic._caller.get(ATTEMPTS + NEXT)) for _ in range(20)]
    await wait_until(lambda: topic.changes.subscribers == 20)
    topic.publish(an_attempt(1), an_attempt(2))
    answer = await topic.watch(ATTEMPTS + "&resourceVersion=0.0")
    answers = [response.content for response in await asyncio.gather(*watches)]
    assert set(answers) == {answer.content}
    metrics = (await topic._caller.get("/metrics")).text
    assert "schedulerlog_api_watch_objects_total 2.0" in metrics
    assert "schedulerlog_api_watches 0.0" in metrics


async def count_longest_run(
    topic: WrittenTopic, watches: "asyncio.Future[Any]", expected: int, monkeypatch: pytest.MonkeyPatch
) -> int:
    """Count the attempts that are decoded at most while no other request gets its turn.

    The watches end when ``expected`` attempts are decoded in all.
    """
    decoded, longest_run = 0, 0

    def count_decoded(state: State, *, is_for_all: bool) -> Decoded | DecodedState:
        nonlocal decoded
        decoded += 1
        return decode_state(state, is_for_all=is_for_all)

    for module in ("events", "shared_events"):
        monkeypatch.setattr(f"api.watch.{module}.decode_state", count_decoded)
    while not watches.done():
        if decoded == expected:
            topic.close()
        before = decoded
        await asyncio.sleep(0)
        longest_run = max(longest_run, decoded - before)
    return longest_run


@pytest.mark.parametrize("path", [ATTEMPTS, PENDING, ATTEMPTS + "&reason=Other"])
async def test_n7_watches_that_open_at_once_leave_others_their_turn(
    topic: WrittenTopic, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each began with all attempts in memory: six hundred of them kept every other request waiting for ten seconds."""
    topic.publish(*(an_attempt(0, f"pod-{number}") for number in range(20)))
    watches = asyncio.gather(*(topic._caller.get(path + "&timeoutSeconds=60") for _ in range(10)))
    assert await count_longest_run(topic, watches, 10 * 20, monkeypatch) == 1
    assert len({answer.content for answer in await watches}) == 1


@pytest.mark.parametrize("path", [ATTEMPTS, ATTEMPTS + "&reason=Other"])
async def test_n7_a_watch_that_shows_nothing_of_many_changes_leaves_others_their_turn(
    topic: WrittenTopic, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It read all changes that there were at once: thousands, some milliseconds each."""
    topic.publish(*(an_attempt(number) for number in range(50)))
    watch = asyncio.ensure_future(topic._caller.get(path + "&resourceVersion=0.0&timeoutSeconds=60"))
    assert await count_longest_run(topic, watch, 50, monkeypatch) == 1
    assert len(parse_lines(await watch)) == (0 if "reason" in path else 50)


@pytest.mark.parametrize(
    ("path", "cause"),
    [
        (PATH + "&resourceVersion=abc", "'abc' is not a resourceVersion"),
        (PATH + "&resourceVersion=1.-1", "is not a resourceVersion"),
        (PATH + "&resourceVersion=" + "9" * 20, "is not a resourceVersion"),
        (PATH + "&timeoutSeconds=-1", "greater than or equal to 0"),
        (PATH + "&timeoutSeconds=1e9", "not a whole number"),
        (PATH + "&watch=false", "given 2 times"),
        (POD + "?watch=perhaps", "boolean"),
        (POD + "?resourceVersion=5", "resourceVersion is about watches"),
        (PATH + "&node=n1", "parameter node: a watch does not have it"),
        (PATH + "&detail=full", "parameter detail: a watch does not have it"),
        (ATTEMPTS + "&limit=5", "parameter limit: a watch does not have it"),
        (ATTEMPTS + "&q=x&since=2h", "parameter q, since: a watch does not have it"),
        (PENDING + "&since=1h", "parameter since: a watch does not have it"),
        ("/api/v1/attempts/f00?watch=true", "parameter 'watch' is unknown"),
    ],
)
async def test_a_wrong_watch_names_its_mistake(topic: WrittenTopic, path: str, cause: str) -> None:
    answer = await topic._caller.get(path)
    assert answer.status_code == 400
    assert cause in answer.json()["error"]
    assert not topic.changes.subscribers


WORDS = st.sampled_from(
    ["", "0", "1", "1.0", "0.0.0", "99999999999.0", "true", "TRUE", "-1", "1e3", "\u0663", "%00", "a" * 99]
)


@settings(max_examples=3_000 if IS_STRESS else 25)
@given(
    path=st.sampled_from([POD, "/api/v1/schedulerlogs", "/api/v1/pending"]),
    query=st.dictionaries(
        st.sampled_from(
            ["watch", "resourceVersion", "allowWatchBookmarks", "sendInitialEvents", "timeoutSeconds", "namespace", "q"]
        ),
        st.one_of(WORDS, st.text(max_size=30)),
    ),
    event_id=st.one_of(WORDS, st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30)),
)
def test_whatever_is_asked_is_answered(path: str, query: dict[str, str], event_id: str) -> None:
    async def send_request() -> httpx.Response:
        topic = WrittenTopic(APPLICATION)
        topic.publish(an_attempt())
        # Every stream ends at once.
        topic.close()
        headers = {"last-event-id": event_id} if event_id.isascii() else {}
        return await APPLICATION.client.get(path, params={"watch": "true"} | query, headers=headers)

    with mock.patch("api.watch.events._BEHIND_SECONDS", 0):
        answer = asyncio.run(send_request())
    assert answer.status_code in (200, 400, 410, 503)
    assert not WrittenTopic(APPLICATION).list_subscriptions()
    if answer.status_code >= 400:
        assert answer.json()["next"]


async def test_a_client_that_takes_nothing_is_hung_up_on(topic: WrittenTopic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.watch.streams.SEND_SECONDS", 0.01)
    hung_up, sent = asyncio.Event(), list[Any]()

    async def stall(message: Any) -> None:
        sent.append(message)
        if message.get("body"):
            await asyncio.Event().wait()

    async def receive() -> Any:
        await hung_up.wait()
        return {"type": "http.disconnect"}

    scope = {
        "type": "http", "method": "GET", "path": POD, "raw_path": POD.encode(), "query_string": b"watch=true",
        "headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2), "scheme": "http",
        "http_version": "1.1", "root_path": "", "state": {}, "extensions": {ABORT: hung_up.set},
    }  # fmt: skip
    topic.publish(an_attempt())
    async with asyncio.timeout(5):
        await topic._caller.app(scope, receive, stall)
    assert hung_up.is_set()
    assert not topic.changes.subscribers
    assert "schedulerlog_api_watches_cut_off_total 1.0" in (await topic._caller.get("/metrics")).text


async def test_a_wrong_last_event_id_names_its_mistake(topic: WrittenTopic) -> None:
    answer = await topic._caller.get(PATH, **{"last-event-id": "1.x"})
    assert (answer.status_code, "Last-Event-ID" in answer.json()["error"]) == (400, True)


async def test_nothing_is_watched_while_the_topic_is_not_followed() -> None:
    caller = Caller()
    caller.remember(following=False)
    assert (await caller.get(PATH)).status_code == 503


async def test_more_watches_than_allowed_are_refused(topic: WrittenTopic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.watch.streams.Streams.__len__", lambda _: 2000)
    answer = await topic._caller.get(PATH)
    assert (answer.status_code, answer.json()["code"]) == (429, "TooManyRequests")
    assert answer.headers["retry-after"]


async def test_head_opens_no_watch(topic: WrittenTopic) -> None:
    answer = await topic._caller.client.head(PATH)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json;stream=watch")
    assert not topic.changes.subscribers


@pytest.fixture
def guarded() -> Guarded:
    # Turns of the loop are counted below.
    api = Guarded(is_over_http=False)
    api.begin()
    return api


LISTS_LLM = Grant("alice", "list", "pods", "llm")


async def test_a_watch_needs_the_right_of_the_answer_without_watch(guarded: Guarded) -> None:
    alice = guarded.reviews.build_header("alice", READS_LLM)
    for path in (PATH.replace("/llm/", "/other/"), ATTEMPTS, ATTEMPTS + "&namespace=llm", PENDING + "&namespace=llm"):
        assert await guarded.get_status(path, alice) == 403, path
    assert await guarded.get_status(PATH, {}) == 401


async def test_a_watch_shows_what_may_be_read_alone_whatever_place_it_begins_at(guarded: Guarded) -> None:
    alice = guarded.reviews.build_header("alice", LISTS_LLM)
    topic = WrittenTopic(guarded)
    topic.publish(an_attempt(0, "secret", "other"), an_attempt())
    events = await topic.read_events(
        ATTEMPTS + "&namespace=llm&resourceVersion=0.0", an_attempt(1, "secret", "other"), an_attempt(1), **alice
    )
    assert [event["object"]["name"] for event in events] == ["deepseek-a", "deepseek-a"]


@pytest.fixture
def seal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(POSITION_SEAL, "read_key", lambda: b"the servers' key")


@pytest.mark.usefixtures("seal")
async def test_n4_a_position_counts_no_attempts_of_others(guarded: Guarded) -> None:
    """Neither the text nor its length shows how many attempts another namespace has had in between."""
    alice = guarded.reviews.build_header("alice", LISTS_LLM)
    topic = WrittenTopic(guarded)
    path = ATTEMPTS + NEXT + "&namespace=llm"
    versions = []
    for number in range(3):
        topic.publish(*(an_attempt(minute, "secret", "other") for minute in range(200)))
        [event] = await topic.read_events(path, an_attempt(number), **alice)
        versions.append(event["object"]["metadata"]["resourceVersion"])
    assert len(set(versions)) == 3
    assert {len(version) for version in versions} == {len(versions[0])}
    assert all("." not in version and not version.isdigit() for version in versions)
    resumed = await topic.read_events(path + f"&resourceVersion={versions[0]}", **alice)
    assert [event["object"]["name"] for event in resumed] == ["deepseek-a", "deepseek-a"]


@pytest.mark.usefixtures("seal")
async def test_n4_unchanged_positions_look_different(guarded: Guarded) -> None:
    assert to_version((5, 7)) != to_version((5, 7))
    assert parse_version(to_version((5, 7))) == (5, 7)


@pytest.mark.usefixtures("seal")
@pytest.mark.parametrize(("version", "status"), [("16.24", 400), ("5", 400), ("A" * 80, 410), ("é" * 80, 400)])
async def test_n4_a_position_that_this_api_did_not_make_is_refused(guarded: Guarded, version: str, status: int) -> None:
    """A caller can't try out positions, and one of a replaced certificate is read again as Kubernetes' clients do."""
    alice = guarded.reviews.build_header("alice", LISTS_LLM)
    assert await guarded.get_status(ATTEMPTS + f"&namespace=llm&resourceVersion={version}", alice) == status


async def test_a_watch_of_one_namespace_names_no_pod_of_another(guarded: Guarded) -> None:
    """A caller who watches all namespaces sees the scheduler's words as they are; one change is shown to both."""
    lead = guarded.reviews.build_header(
        "lead", Grant("lead", "list", "pods", "llm"), Grant("lead", "get", "pods", "llm")
    )
    everywhere = guarded.reviews.build_header("all", Grant("all", "list", "pods"))
    topic = WrittenTopic(guarded)
    topic.publish(an_attempt(error="preempted by other/secret"))
    words = {}
    for path, version, header in (
        (PATH, "0.0", lead),
        (ATTEMPTS + "&namespace=llm", "0.0", lead),
        (PENDING_OF_LLM, ".".join("0000"), lead),
        (ATTEMPTS, "0.0", everywhere),
    ):
        events = await topic.read_events(f"{path}&resourceVersion={version}", **header)
        words[path] = [name for name in ("other/secret", HIDDEN_POD) if name in str(events)]
    assert list(words.values()) == [[HIDDEN_POD], [HIDDEN_POD], [], ["other/secret"]], words


async def test_a_watch_ends_when_its_right_is_revoked(guarded: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.authority.streams.CHECK_SECONDS", 0.02)
    alice = guarded.reviews.build_header("alice", LISTS_LLM)
    topic = WrittenTopic(guarded)
    watch = asyncio.ensure_future(guarded.get(ATTEMPTS + NEXT + "&namespace=llm", **alice))
    await wait_until(lambda: topic.changes.subscribers > 0)
    topic.publish(an_attempt(1))
    await asyncio.sleep(0.05)
    guarded.reviews.grants.clear()
    guarded.clock.now += 6
    await asyncio.sleep(0.1)
    topic.publish(an_attempt(2))
    events = parse_lines(await watch)
    assert list_types(events) == ["ADDED", "ERROR"]
    assert events[1]["object"]["code"] == 403
    assert not topic.changes.subscribers
