"""Messages from the API's own watch to real receivers: an HTTP server, and a server of mail."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import uvicorn
import yaml

from pipeline.metrics import NotifyMetrics
from pipeline.notify.messages import Message, build_cloud_event
from pipeline.notify.process import ApiAccess, Notifier, NotifyPolicy, _Due
from pipeline.notify.sent_memory import ConfigMapStore, FileStore, Sent, SentMemory
from pipeline.notify.service import NotifyService, run
from pipeline.notify.subscriptions import ANNOTATION, find_targets, to_plural
from pipeline.notify.targets import TargetsFile, read_targets
from pipeline.notify.waiting_workloads import SubscribedWorkload, WorkloadObstacles
from runtime.errors import SettingError
from runtime.kubernetes.credentials import from_kubeconfig
from runtime.kubernetes.errors import KubeApiError
from schemas.events import PodDescription, PodRef, PodWait
from schemas.json_types import Json
from tests.support.builders.events import OF_A_JOB, STARTED, a_refusal, a_summary
from tests.support.certificates import Authority
from tests.support.fakes.objects import FakeObjects
from tests.support.harness.api_app import Caller
from tests.support.smtp_receiver import receiving_mail
from tests.support.waiting import eventually_async
from tests.support.webhook_receiver import Receiver, receiving

POD = "/api/v1/namespaces/llm/pods/train-0"
JOB = "/apis/batch/v1/namespaces/llm/jobs/train"
NAMESPACE = "/api/v1/namespaces/llm"


class Objects(FakeObjects):
    async def get_metadata(self, path: str) -> Json:
        return await self.get(path)


def build_annotated(targets: str) -> Json:
    return {"metadata": {"annotations": {ANNOTATION: targets}}}


def subscribe(targets: str) -> Objects:
    """Build a pod of a Job, whose annotation names the targets."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "controller": True}
    return Objects(
        {NAMESPACE: {"metadata": {}}, POD: {"metadata": {"ownerReferences": [owner]}}, JOB: build_annotated(targets)}
    )


@asynccontextmanager
async def serving_api(caller: Caller) -> AsyncIterator[str]:
    server = uvicorn.Server(uvicorn.Config(caller.app, port=0, lifespan="off", log_level="error"))
    task = asyncio.create_task(server.serve())
    await eventually_async(lambda: server.started)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = server.force_exit = True
        await task


def judge(
    caller: Caller, number: int, code: str = "", pod: str = "train-0", description: PodDescription | None = OF_A_JOB
) -> None:
    """Publish an attempt of the pod: it is refused for the code, or placed without one."""
    wait = PodWait(
        code=code, layer="nodes", sentence_en=f"{code}.", sentence_zh=f"{code}。", models=[], pools=[],
        nearest_nodes=[], reasons={},
    )  # fmt: skip
    refused: dict[str, Any] = {"refusals": [a_refusal(**{code: 8})], "wait": wait} if code else {}
    bind = {"node": "node1", "bound": True, "ended_at": STARTED + timedelta(seconds=number)}
    placed: dict[str, Any] = {"status": "succeeded", "chosen": "node1", "fit_nodes": 1, "verdict": [2, 0], "bind": bind}
    caller.remember(
        a_summary(
            pod=PodRef(namespace="llm", name=pod, uid=f"uid-{pod}"),
            attempt_id=f"{number:032x}",
            started_at=STARTED + timedelta(seconds=number),
            ended_at=STARTED + timedelta(seconds=number),
            version=number,
            description=description,
            **refused,
            **({} if code else placed),
        )
    )


@pytest.fixture
def caller() -> Caller:
    caller = Caller()
    judge(caller, 1, "CardInsufficientMemory")
    return caller


@asynccontextmanager
async def notifying(
    url: str, objects: Objects, tmp_path: Path, targets: dict[str, Any], settle: float = 0.0
) -> AsyncIterator[Notifier]:
    file = tmp_path / "targets.yaml"
    file.write_text(yaml.safe_dump(targets))
    policy = NotifyPolicy("default", TargetsFile(file), timedelta(seconds=settle), "https://page.example")
    async with aiohttp.ClientSession() as session:
        memory = SentMemory(FileStore(tmp_path / "sent.json"))
        notifier = Notifier(ApiAccess(url), objects, memory, policy, NotifyMetrics(), session)
        task = asyncio.create_task(notifier.run())
        try:
            yield notifier
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


def a_webhook(tmp_path: Path, receiver: Receiver, **fields: Any) -> dict[str, Any]:
    file = tmp_path / "hook.url"
    file.write_text(f"{receiver.url}\n")
    return {"kind": "webhook", "url_file": str(file), **fields}


async def settle_for(seconds: float = 1.0) -> None:
    await asyncio.sleep(seconds)


async def test_a_changed_obstacle_and_the_start_are_sent_once_also_over_a_restart(
    caller: Caller, tmp_path: Path
) -> None:
    async with serving_api(caller) as url, receiving() as receiver:
        targets = {"team": a_webhook(tmp_path, receiver)}
        async with notifying(url, subscribe("team"), tmp_path, targets):
            await eventually_async(lambda: len(receiver.texts) == 1)
            first = receiver.texts[0]
            assert first.startswith("llm/Job/train waits: ")
            diagnosis = (await caller.get(f"{POD}/diagnosis?exclusion=false")).json()
            assert diagnosis["headline"]["en"] in first
            assert first.endswith("https://page.example/ui/pods/llm/train-0")
            # Another try with the same obstacle is no news.
            judge(caller, 2, "CardInsufficientMemory")
            await settle_for()
            assert len(receiver.texts) == 1
        async with notifying(url, subscribe("team"), tmp_path, targets):
            await settle_for()
            assert len(receiver.texts) == 1
            judge(caller, 3, "CardTypeMismatch")
            await eventually_async(lambda: len(receiver.texts) == 2)
        # It starts while nobody watches.
        judge(caller, 4)
        async with notifying(url, subscribe("team"), tmp_path, targets):
            await eventually_async(lambda: len(receiver.texts) == 3)
            assert receiver.texts[2].startswith("llm/Job/train started")
        async with notifying(url, subscribe("team"), tmp_path, targets):
            await settle_for()
        assert len(receiver.texts) == 3


class CountingStore:
    """Store of the memory that counts how often it is written, and can fail."""

    def __init__(self) -> None:
        self.saves, self.failures, self.content = 0, 0, b""

    async def load(self) -> bytes:
        return self.content

    async def save(self, content: bytes) -> None:
        self.saves += 1
        if self.failures:
            self.failures -= 1
            raise KubeApiError(503, "etcd is away")
        self.content = content


@pytest.mark.parametrize(("failures", "saves"), [(0, 3), (1, 2)])
async def test_each_message_is_remembered_before_the_next_and_a_failed_write_is_tried_again(
    caller: Caller, tmp_path: Path, failures: int, saves: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.notify.process._SAVE_PAUSE", timedelta(milliseconds=100))
    store = CountingStore()
    store.failures = failures
    async with serving_api(caller) as url, receiving() as receiver:
        targets = {name: a_webhook(tmp_path, receiver) for name in ("team", "people", "lead")}
        async with notifying(url, subscribe("team,people,lead"), tmp_path, targets) as notifier:
            notifier.memory.store = store
            await eventually_async(lambda: store.saves == saves)
            await settle_for()
    assert len(receiver.texts) == len(targets)
    assert store.saves == saves
    assert all(f'"{name}"'.encode() in store.content for name in targets)


async def test_pods_of_one_workload_are_one_message(caller: Caller, tmp_path: Path) -> None:
    for number in range(1, 5):
        judge(caller, 10 + number, "CardInsufficientMemory", f"train-{number}")
    async with serving_api(caller) as url, receiving() as receiver:
        targets = {"team": a_webhook(tmp_path, receiver)}
        async with notifying(url, subscribe("team"), tmp_path, targets):
            await eventually_async(lambda: bool(receiver.texts))
            await settle_for()
            assert len(receiver.texts) == 1


async def test_an_obstacle_that_the_pods_answer_has_left_behind_is_no_news(caller: Caller, tmp_path: Path) -> None:
    key = SubscribedWorkload("llm", "Job/train")
    async with serving_api(caller) as url, receiving() as receiver:
        targets = {"bus": {"kind": "cloudevents", "url": receiver.url}}
        async with notifying(url, subscribe("bus"), tmp_path, targets) as notifier:
            await eventually_async(lambda: len(receiver.bodies) == 1)
            # The list of waiting pods has an older obstacle than the diagnosis that a message quotes.
            notifier.waits.take("MODIFIED", an_item("train-0", "NotYetSeen"))
            notifier.due[key] = _Due(notifier.clock())
            await eventually_async(lambda: not notifier.due)
            await settle_for()
    assert [event["data"]["obstacle"] for event in receiver.bodies] == ["CardInsufficientMemory"]


async def test_a_receiver_that_is_down_gets_the_message_later_and_one_that_refuses_it_none(
    caller: Caller, tmp_path: Path
) -> None:
    async with serving_api(caller) as url, receiving() as receiver:
        receiver.status = 503
        targets = {"team": a_webhook(tmp_path, receiver)}
        async with notifying(url, subscribe("team"), tmp_path, targets):
            await eventually_async(lambda: receiver.refused >= 2)
            receiver.status = 200
            await eventually_async(lambda: len(receiver.texts) == 1)
            receiver.status, before = 400, receiver.refused
            judge(caller, 5, "CardTypeMismatch")
            await eventually_async(lambda: receiver.refused == before + 1)
            await settle_for(2.5)
            assert receiver.refused == before + 1


@pytest.mark.parametrize("status", [401, 403, 404, 410])
async def test_a_message_that_is_refused_waits_for_new_targets_and_is_sent_once(
    caller: Caller, tmp_path: Path, status: int
) -> None:
    async with serving_api(caller) as url, receiving() as before, receiving() as after:
        before.status = status
        async with notifying(url, subscribe("team"), tmp_path, {"team": a_webhook(tmp_path, before)}) as notifier:
            await eventually_async(lambda: before.refused > 0)
            file = tmp_path / "targets.yaml"
            # A mistake changes nothing.
            file.write_text("team: {kind: pigeon}")
            assert list(notifier.policy.targets.get()) == ["team"]
            file.write_text(yaml.safe_dump({"team": {"kind": "cloudevents", "url": after.url}}))
            await eventually_async(lambda: bool(after.bodies))
            assert not notifier.due
        assert (len(before.bodies), len(after.bodies)) == (0, 1)


async def test_token_and_password_are_replaced_while_messages_flow_and_each_arrives_once(
    caller: Caller, tmp_path: Path
) -> None:
    token, (before, after) = tmp_path / "token", ("first", "second")
    token.write_text(before)
    authority = Authority(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    pair = authority.issue("localhost")
    context.load_cert_chain(pair.certificate, pair.key)
    objects = Objects({NAMESPACE: build_annotated("bus, people")})
    async with serving_api(caller) as url, receiving() as receiver, receiving_mail(context) as mail:
        receiver.token = mail.password = before
        targets = {
            "bus": {"kind": "cloudevents", "url": receiver.url, "token_file": str(token)},
            "people": {
                "kind": "mail", "smtp": mail.address, "from": "schedulerlog@example.org", "to": ["ml@example.org"],
                "ca_file": str(authority.ca_file), "username": "schedulerlog", "password_file": str(token),
            },
        }  # fmt: skip
        async with notifying(url, objects, tmp_path, targets):

            async def publish_news(number: int) -> None:
                judge(caller, 100 + number, "CardInsufficientMemory", f"alone-{number}", None)
                await asyncio.sleep(0.05)

            for number in range(20):
                await publish_news(number)
            await eventually_async(lambda: bool(receiver.bodies and mail.mails))
            receiver.token = mail.password = after
            for number in range(20, 40):
                await publish_news(number)
            await eventually_async(lambda: receiver.refused > 0 and mail.refused_logins > 0)
            token.write_text(after)
            for number in range(40, 60):
                await publish_news(number)
            await eventually_async(lambda: len(receiver.bodies) >= 61 and len(mail.mails) >= 61)
            await publish_news(60)
            await eventually_async(lambda: receiver.bodies[-1]["subject"].endswith("/alone-60"))
            await eventually_async(lambda: len(mail.mails) >= 62)
    expected = sorted(["train", *(f"alone-{number}" for number in range(61))])
    assert sorted(body["subject"].rpartition("/")[2] for body in receiver.bodies) == expected
    assert sorted(str(item["Subject"]).split()[0].rpartition("/")[2] for item in mail.mails) == expected


async def test_without_an_annotation_nothing_is_sent(caller: Caller, tmp_path: Path) -> None:
    async with serving_api(caller) as url, receiving() as receiver:
        targets = {"team": a_webhook(tmp_path, receiver), "other": a_webhook(tmp_path, receiver, namespaces=["ml"])}
        # `other` is not for this namespace, `unknown` is no target.
        async with notifying(url, subscribe("other, unknown"), tmp_path, targets) as notifier:
            await eventually_async(lambda: not notifier.due and bool(notifier.waits.list_keys()))
            await settle_for()
        assert receiver.texts == []


async def test_cloud_events_have_the_form_of_the_specification_and_the_token_of_the_file(
    caller: Caller, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    async with serving_api(caller) as url, receiving() as receiver:
        targets = {"bus": {"kind": "cloudevents", "url": receiver.url, "token_file": str(token)}}
        async with notifying(url, subscribe("bus"), tmp_path, targets):
            await eventually_async(lambda: len(receiver.bodies) == 1)
            token.write_text("the second\n")
            judge(caller, 6, "CardTypeMismatch")
            await eventually_async(lambda: len(receiver.bodies) == 2)
    event = receiver.bodies[0]
    # Required attributes of CloudEvents 1.0, in structured mode.
    assert {"specversion", "id", "source", "type"} <= event.keys()
    assert (event["specversion"], event["type"]) == ("1.0", "io.schedulerlog.workload.waits.v1")
    assert event["data"]["obstacle"] == "CardInsufficientMemory"
    assert receiver.headers[0]["Content-Type"] == "application/cloudevents+json"
    assert [sent["Authorization"] for sent in receiver.headers] == ["Bearer first", "Bearer the second"]
    assert receiver.bodies[0]["id"] != receiver.bodies[1]["id"]


@pytest.mark.parametrize("security", ["none", "starttls"])
async def test_mail_is_taken_by_a_server(caller: Caller, tmp_path: Path, security: str) -> None:
    authority = Authority(tmp_path / "authority")
    pair = authority.issue("localhost")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.certificate, pair.key)
    async with serving_api(caller) as url, receiving_mail(context) as receiver:
        target = {
            "kind": "mail", "smtp": receiver.address, "from": "schedulerlog@example.org", "to": ["ml@example.org"],
            "security": security, "ca_file": str(authority.ca_file), "language": "zh",
        }  # fmt: skip
        async with notifying(url, subscribe("people"), tmp_path, {"people": target}):
            await eventually_async(lambda: len(receiver.mails) == 1)
    mail = receiver.mails[0]
    assert (mail["To"], mail["Subject"]) == ("ml@example.org", "llm/Job/train 正在等待")
    assert "https://page.example/ui/pods/llm/train-0" in mail.get_content()
    assert mail["Message-ID"].endswith("@schedulerlog>")
    assert receiver.were_encrypted == [security == "starttls"]


async def test_a_namespace_and_a_pod_subscribe_too_and_what_may_not_be_read_names_none(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("https://hooks.example/x")
    file = tmp_path / "targets.yaml"
    file.write_text(yaml.safe_dump({name: {"kind": "webhook", "url_file": str(tmp_path / "url")} for name in "abc"}))
    targets, key = read_targets(file), SubscribedWorkload("llm", "Job/train")
    objects = subscribe("c")
    objects.objects[NAMESPACE] = build_annotated("a")
    objects.objects[POD]["metadata"]["annotations"] = {ANNOTATION: "b"}
    assert list(await find_targets(objects, key, "train-0", targets)) == ["a", "b", "c"]
    assert list(await find_targets(Objects({}), key, "train-0", targets)) == []


class ConfigMaps:
    """An API server's ConfigMaps; ``patch`` of a missing one is answered as by a real one."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}

    async def get(self, path: str) -> Json:
        if path not in self.objects:
            raise KubeApiError(404, "not found")
        return dict(self.objects[path])

    async def patch(self, path: str, change: Json) -> Json:
        await self.get(path)
        self.objects[path] |= change
        return dict(self.objects[path])

    async def create(self, path: str, obj: Json) -> Json:
        self.objects[f"{path}/{obj['metadata']['name']}"] = dict(obj)
        return obj


async def test_what_was_sent_is_in_a_config_map_that_is_made_when_it_is_needed() -> None:
    server, key = ConfigMaps(), SubscribedWorkload("llm", "Job/train")
    store = ConfigMapStore(server, "schedulerlog", "schedulerlog-notify")
    memory, sent = SentMemory(store), Sent("A", 1, "2026-01-01T00:00:00Z", "train-0")
    await memory.load()
    memory.put(key, "team", sent)
    memory.put(key, "people", sent._replace(code="B"))
    await memory.save()
    again = SentMemory(store)
    await again.load()
    assert again.get_sent(key) == {"team": sent, "people": sent._replace(code="B")}
    again.forget(key, "team")
    again.forget(key)
    await again.save()
    last = SentMemory(store)
    await last.load()
    assert last.list_keys() == []
    assert list(server.objects) == ["/api/v1/namespaces/schedulerlog/configmaps/schedulerlog-notify"]


async def test_outside_of_a_cluster_the_memory_needs_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("POD_NAMESPACE", raising=False)
    (tmp_path / "targets.yaml").write_text("{}")
    policy = NotifyPolicy("default", TargetsFile(tmp_path / "targets.yaml"), timedelta(), "")
    service = NotifyService(ApiAccess("http://127.0.0.1:1"), policy, from_kubeconfig(tmp_path, None), None, None)
    with pytest.raises(SettingError, match="--memory-file"):
        await run(service)


def test_a_message_names_no_pod_of_another_namespace() -> None:
    headline = {"en": "Wait for the end of ml/solver-0, which holds 5 devices.", "zh": "等待 ml/solver-0 结束。"}
    key, moment = SubscribedWorkload("llm", "Job/train"), STARTED
    message = Message(key, "waits", "A", "train-0", 1, headline, "", moment, "f00")
    assert "solver-0" not in message.write_text("en") + message.write_text("zh")
    assert "solver-0" not in str(build_cloud_event(message, "default"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("team: {kind: pager}", "team"),
        ("team: {kind: webhook, url_file: /nowhere}", "/nowhere"),
        ("team: {kind: cloudevents, url: ftp}", "team.cloudevents.url"),
        ("team: {kind: mail, smtp: x:25, from: a@b, to: []}", "to"),
        ("[", "targets.yaml"),
    ],
)
def test_a_mistake_in_the_targets_is_named(tmp_path: Path, content: str, words: str) -> None:
    file = tmp_path / "targets.yaml"
    file.write_text(content)
    with pytest.raises(SettingError, match=words):
        read_targets(file)


def an_item(name: str, code: str, since: str = "2026-01-01T00:00:00Z") -> Json:
    names = {"namespace": "llm", "name": name}
    obstacle = {"code": code, "sentence": {"en": code, "zh": code}} if code else None
    return {"metadata": names, "workload": "Job/train", "obstacle": obstacle, "first_judged_at": since}


def test_the_obstacle_with_the_greatest_number_of_pods_counts_and_equal_numbers_take_no_turns() -> None:
    waits, key = WorkloadObstacles(), SubscribedWorkload("llm", "Job/train")
    for name, code in (("a", "B"), ("b", "A"), ("c", "")):
        assert waits.take("ADDED", an_item(name, code)) == key
    find: Callable[[], str] = lambda: getattr(waits.find_wait(key), "code", "-")  # noqa: E731
    assert find() == "A"
    waits.take("ADDED", an_item("d", "B"))
    assert find() == "B"
    for name in "abcd":
        assert waits.take("DELETED", an_item(name, "")) == key
    assert find() == "-"
    assert waits.take("DELETED", an_item("never", "")) is None


@pytest.mark.parametrize(
    ("kind", "resource"),
    [("Job", "jobs"), ("Deployment", "deployments"), ("RayCluster", "rayclusters"), ("Ingress", "ingresses"),
     ("PodGroupPolicy", "podgrouppolicies"), ("Gateway", "gateways")],
)  # fmt: skip
def test_resources_are_plurals_of_their_kinds(kind: str, resource: str) -> None:
    assert to_plural(kind) == resource


async def test_a_message_that_is_being_sent_at_the_stop_is_sent_once(caller: Caller, tmp_path: Path) -> None:
    async with serving_api(caller) as url, receiving() as receiver:
        targets = {"team": a_webhook(tmp_path, receiver)}
        receiver.seconds = 1.0
        async with notifying(url, subscribe("team"), tmp_path, targets):
            await eventually_async(lambda: len(receiver.texts) == 1)
        receiver.seconds = 0.0
        async with notifying(url, subscribe("team"), tmp_path, targets):
            await settle_for()
        assert len(receiver.texts) == 1
