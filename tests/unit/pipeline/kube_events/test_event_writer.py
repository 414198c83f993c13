"""Messages written to an API server that fails in every way it can: in the end each is counted once."""

import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web

from engine.summaries.named_pods import HIDDEN_POD
from pipeline.kube_events.event_writer import EventPolicy, EventWriter
from pipeline.metrics import EventsMetrics
from runtime.kafka.record import Record
from runtime.kubernetes.client import Client
from runtime.kubernetes.resources import EVENTS, Key
from schemas.codec.records import encode
from schemas.events import PodMessage, PodRef
from schemas.topics import DEAD_LETTERS, MESSAGES
from tests.support.builders.messages import BEGAN, TRAINER, a_message, emit
from tests.support.fakes.api_server import FakeApi, a_client, serving
from tests.support.fakes.index_and_topics import FakeTopics


class FakeEventsApi(FakeApi):
    """Lists events too."""

    def _get(self, request: web.Request) -> web.Response:
        if request.path == EVENTS.build_collection_path():
            events = [event for path, event in self.objects.items() if "/events/" in path]
            return web.json_response({"items": events, "metadata": {}})
        return super()._get(request)

    def count_events(self) -> dict[str, int]:
        events = [event for path, event in self.objects.items() if "/events/" in path]
        return {event["note"]: event.get("series", {}).get("count", 1) for event in events}


def a_record(key: bytes, value: bytes, headers: Sequence[tuple[str, bytes]] = ()) -> Record:
    return Record(MESSAGES.name, 0, 7, key, value, headers)


def build_records(*messages: PodMessage) -> list[Record]:
    return [a_record(*encode(emit(message))[:3]) for message in messages]


def a_writer(client: Client, topics: FakeTopics | None = None, **policy: Any) -> EventWriter:
    return EventWriter(
        client, topics or FakeTopics(), EventsMetrics(), EventPolicy(**({"longest_pause_seconds": 0.01} | policy))
    )


NOW = BEGAN + timedelta(minutes=30)


@pytest.mark.parametrize("seed", range(8))
async def test_whatever_fails_every_message_is_counted_once(seed: int) -> None:
    rng, api = random.Random(seed), FakeEventsApi()
    codes = [rng.choice("AB") for _ in range(60)]
    messages = [a_message(number, code=code, text=f"1 nodes {code}") for number, code in enumerate(codes)]
    async with serving(api) as url, a_client(url) as client:
        writer = a_writer(client)
        for start in range(0, 60, 5):
            for _ in range(rng.randint(0, 2)):
                verb = rng.choice(("POST", "PATCH", "GET"))
                api.fail(f"{verb} {EVENTS.root}", status=rng.choice((500, 503, 429, 403, 409)))
            if rng.random() < 0.3 and api.objects:
                path = rng.choice(list(api.objects))
                api.lose_answer(f"PATCH {path}")
            if rng.random() < 0.3:
                writer = a_writer(client)  # a new process, which reads some of it again
                start = max(0, start - 5)
            await writer.write(build_records(*messages[start : start + 10]), NOW)
        api.faults.clear()
        await writer.write(build_records(*messages), NOW)
    expected = {
        f"1 nodes {code}": sum(message.code == code for message in messages)
        for code in {message.code for message in messages}
    }
    assert api.count_events() == expected


async def test_an_event_that_the_api_server_has_dropped_begins_again() -> None:
    api = FakeEventsApi()
    async with serving(api) as url, a_client(url) as client:
        writer = a_writer(client)
        await writer.write(build_records(a_message(0), a_message(1)), NOW)
        api.drop(next(iter(api.objects)))
        await writer.write(build_records(a_message(2)), NOW)
    assert list(api.count_events().values()) == [1]


async def test_what_is_not_a_message_or_can_never_be_written_is_dead_lettered() -> None:
    api, topics = FakeEventsApi(), FakeTopics()
    async with serving(api) as url, a_client(url) as client:
        api.fail(f"POST {EVENTS.root}/namespaces/bad", status=422)
        bad = a_message(pod=PodRef(namespace="bad", name="x", uid="u"))
        await a_writer(client, topics).write([a_record(b"k", b"{"), *build_records(bad, a_message())], NOW)
    assert len(topics.list_sent(DEAD_LETTERS.name)) == 2
    assert list(api.count_events().values()) == [1]


async def test_messages_of_other_schedulers_and_old_ones_are_passed_over() -> None:
    api = FakeEventsApi()
    async with serving(api) as url, a_client(url) as client:
        writer = a_writer(client, schedulers=frozenset({"mine"}))
        await writer.write(build_records(a_message(), a_message(1, scheduler="mine", text="mine")), NOW)
        await writer.write(build_records(a_message(2, scheduler="mine")), BEGAN + timedelta(hours=2))
    assert api.count_events() == {"mine": 1}


async def test_messages_of_another_cluster_are_passed_over_also_where_its_pods_have_the_same_names() -> None:
    api = FakeEventsApi()
    both = [a_message(cluster=cluster, text=cluster) for cluster in ("east", "west")]
    async with serving(api) as url, a_client(url) as client:
        await a_writer(client, cluster="west").write(build_records(*both), NOW)
    assert api.count_events() == {"west": 1}


async def test_a_pod_without_a_uid_is_looked_up_and_may_be_gone() -> None:
    api = FakeEventsApi()
    api.put("/api/v1/namespaces/ml/pods/trainer", {"metadata": {"uid": "uid-1", "namespace": "ml"}})
    here, missing = PodRef(namespace="ml", name="trainer"), PodRef(namespace="ml", name="gone")
    async with serving(api) as url, a_client(url) as client:
        await a_writer(client).write(build_records(a_message(pod=here), a_message(1, pod=missing), a_message(2)), NOW)
    (event,) = [item for path, item in api.objects.items() if "/events/" in path]
    assert event["regarding"]["uid"] == TRAINER.uid
    assert event["series"]["count"] == 2
    assert event["metadata"]["name"] in str(EVENTS.build_object_path(Key("ml", event["metadata"]["name"])))


async def test_a_namespace_that_is_being_deleted_is_not_an_error() -> None:
    class Going(FakeEventsApi):
        async def answer(self, request: web.Request) -> web.StreamResponse:
            if request.method == "POST":
                message = (
                    "events is forbidden: unable to create new content in namespace ml because it is being terminated"
                )
                return web.json_response({"message": message}, status=403)
            return await super().answer(request)

    async with serving(api := Going()) as url, a_client(url) as client:
        await a_writer(client).write(build_records(a_message()), NOW)
    assert api.count_events() == {}


async def test_n5_an_event_names_no_pod_of_another_known_namespace() -> None:
    api, text = FakeEventsApi(), "0/3 nodes: volume of keep_team-b(6f1c), see.team-b/keep and ml/other"
    others = a_message(1, text="placed", pod=PodRef(namespace="team-b", name="keep", uid="uid-2"))
    async with serving(api) as url, a_client(url) as client:
        # The message that shows the namespace comes later in the batch.
        await a_writer(client).write(build_records(a_message(text=text), others), NOW)
    hidden = f"0/3 nodes: volume of {HIDDEN_POD}(6f1c), see.{HIDDEN_POD} and ml/other"
    assert set(api.count_events()) == {hidden, "placed"}


async def test_a_record_of_which_the_api_server_refuses_one_line_is_dead_lettered_and_counted_once_when_replayed() -> (
    None
):
    api, topics = FakeEventsApi(), FakeTopics()
    lines = [a_message(code=code, text=f"1 nodes {code}") for code in ("A", "B", "")]
    record = a_record(*encode(emit(*lines))[:3])
    async with serving(api) as url, a_client(url) as client:
        api.fail(f"POST {EVENTS.root}", status=422)
        await a_writer(client, topics).write([record], NOW)
        (letter,) = topics.list_sent(DEAD_LETTERS.name)
        assert letter.value == record.value
        assert len(api.count_events()) == 2
        await a_writer(client).write([record], NOW)
    assert api.count_events() == {"1 nodes A": 1, "1 nodes B": 1, "1 nodes ": 1}
