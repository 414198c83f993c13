"""``python -m pipeline notify`` as a process: watches what waits, and sends what is news to who subscribed.

News counts once it has lasted: pods that start within seconds, and obstacles that take turns, send nothing.
"""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import quote

import aiohttp
import orjson
from pydantic import SecretStr

from pipeline.metrics import NotifyMetrics
from pipeline.notify.delivery import DeliveryError, deliver
from pipeline.notify.messages import Message, State, derive_id
from pipeline.notify.sent_memory import Sent, SentMemory
from pipeline.notify.subscriptions import ReadMetadata, find_targets
from pipeline.notify.targets import Target, TargetsFile
from pipeline.notify.waiting_workloads import DecisiveWait, SubscribedWorkload, WorkloadObstacles
from pipeline.settings import NotifySettings
from runtime.backoff import Backoff
from runtime.kubernetes.errors import KubeApiError
from runtime.signals import run_until_cancelled
from schemas.json_types import Json

_SILENCE_SECONDS: Final = 120.0
"""The watch of the API has a bookmark at least each minute."""
_LINE_BYTES: Final = 16 * 1024**2
_LONGEST_PAUSE: Final = timedelta(minutes=5)
_STOP_SECONDS: Final = 15.0
"""Time in which a message that is being sent may end when the process stops; one takes ten seconds at most."""
_SAVE_PAUSE: Final = timedelta(seconds=5)
"""Time after which a memory that could not be saved is saved again."""
_INITIAL_END: Final = "k8s.io/initial-events-end"
_STARTED: Final = ("placed", "placed with devices", "ended")
_WITHOUT_POD: Final = ("", "missing", "not known")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ApiAccess:
    """Access to schedulerlog's API, with the right to list all pods."""

    url: str
    ca_file: Path | None = None
    token: SecretStr | None = None
    certificate_file: Path | None = None
    """The API's own certificate, in place of an authority, where its URL has no name of the certificate."""
    host: str = ""
    """Name under which the API answers, in place of the URL's."""

    def build_headers(self) -> dict[str, str]:
        host = {"Host": self.host} if self.host else {}
        return host | ({"Authorization": f"Bearer {self.token.get_secret_value()}"} if self.token else {})

    def build_context(self) -> ssl.SSLContext | bool:
        if self.certificate_file is None:
            return ssl.create_default_context(cafile=self.ca_file) if self.ca_file else True
        context = ssl.create_default_context(cafile=self.certificate_file)
        context.check_hostname = False
        # The certificate itself is trusted, without its authority.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        return context


@dataclass(frozen=True, slots=True)
class NotifyPolicy:
    cluster: str
    targets: TargetsFile
    settle: timedelta
    """Time that news has to last."""
    link: str
    """Address of the page for people; empty for none."""

    @classmethod
    def from_settings(cls, settings: NotifySettings, targets: TargetsFile) -> Self:
        page = settings.notify_page_url.rstrip("/")
        return cls(settings.cluster_name, targets, settings.notify_settle, page)


@dataclass(slots=True)
class _Due:
    moment: datetime
    tries: int = 0


@dataclass(slots=True)
class Notifier:
    api: ApiAccess
    objects: ReadMetadata
    memory: SentMemory
    policy: NotifyPolicy
    metrics: NotifyMetrics
    session: aiohttp.ClientSession
    is_leading: Callable[[], bool] = lambda: True
    """Question asked before each message: a process that stood still for long learns here that another one sends."""
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    waits: WorkloadObstacles = field(default_factory=WorkloadObstacles)
    due: dict[SubscribedWorkload, _Due] = field(default_factory=dict)
    next_save: datetime | None = None
    """Time before which the memory is not saved again, after a failure."""
    api_wait: Backoff = field(default_factory=lambda: Backoff("schedulerlog's API", 30.0))

    async def run(self) -> None:
        """Work until cancelled. Nothing is left of an earlier run: another process may have sent since."""
        await self.memory.load()
        self.waits, self.due = WorkloadObstacles(), {}
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow())
            tasks.create_task(self._send_all())

    async def _follow(self) -> None:
        while True:
            try:
                await self._read_watch()
            except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
                await self.api_wait.wait_after_failure(str(error) or type(error).__name__)

    async def _read_watch(self) -> None:
        """Read one watch from the present state on: what ended meanwhile is in memory and waits no more."""
        fresh, is_initial = WorkloadObstacles(), True
        async for kind, item in self._stream("/api/v1/pending"):
            if kind == "BOOKMARK":
                if is_initial and _INITIAL_END in (item["metadata"].get("annotations") or {}):
                    self.api_wait.note_success()
                    self.waits, is_initial = fresh, False
                    for key in dict.fromkeys((*fresh.list_keys(), *self.memory.list_keys())):
                        self._note(key)
            elif kind in ("ADDED", "MODIFIED", "DELETED"):
                changed = fresh.take(kind, item)
                if changed and not is_initial:
                    self._note(changed)
            else:
                raise ValueError(f"the watch ended: {item.get('message', kind)}")

    def _note(self, key: SubscribedWorkload) -> None:
        self.due.setdefault(key, _Due(self.clock() + self.policy.settle))

    async def _stream(self, path: str) -> AsyncIterator[tuple[str, Json]]:
        query = {"watch": "true", "allowWatchBookmarks": "true", "sendInitialEvents": "true"}
        limits = aiohttp.ClientTimeout(total=None, sock_connect=10.0, sock_read=_SILENCE_SECONDS)
        async with self.session.get(
            f"{self.api.url}{path}",
            params=query,
            headers=self.api.build_headers(),
            ssl=self.api.build_context(),
            timeout=limits,
            read_bufsize=_LINE_BYTES,
        ) as response:
            response.raise_for_status()
            async for line in response.content:
                if line.strip():
                    event = orjson.loads(line)
                    yield event["type"], event["object"]

    async def _send_all(self) -> None:
        while True:
            await self.send_due()
            await asyncio.sleep(0.2)

    async def send_due(self) -> None:
        """Send the news that has lasted; what could not be sent is due again later."""
        now = self.clock()
        for key in [key for key, due in self.due.items() if due.moment <= now]:
            due = self.due.pop(key)
            try:
                # A stop between a message and its note would let the next process send it again.
                is_done = await run_until_cancelled(self._send_news(key, now), lambda: None, _STOP_SECONDS)
            except (KubeApiError, aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
                logger.warning("%s: its news could not be sent yet: %s", key, error)
                is_done = False
            if not is_done:
                pause = min(timedelta(seconds=2**due.tries), _LONGEST_PAUSE)
                self.due.setdefault(key, _Due(now + pause, min(due.tries + 1, 10)))
        # Where a save failed, without a message since.
        await self._save_memory(now)

    async def _save_memory(self, now: datetime) -> None:
        if self.next_save and now < self.next_save:
            return
        try:
            await self.memory.save()
        except (KubeApiError, aiohttp.ClientError, OSError, TimeoutError) as error:
            logger.warning("what was sent could not be saved yet: %s", error)
            self.next_save = now + _SAVE_PAUSE

    async def _send_news(self, key: SubscribedWorkload, now: datetime) -> bool:
        """Send the workload's news to each target that does not have it. Returns false if one is to be tried again."""
        wait, sent = self.waits.find_wait(key), self.memory.get_sent(key)
        if wait is None:
            return await self._send_end(key, sent, now) if sent else True
        if not wait.code:
            return True
        targets = await find_targets(self.objects, key, wait.pod, self.policy.targets.get())
        is_done, diagnosis = True, None
        for name, target in targets.items():
            last = sent.get(name)
            if last and last.code == wait.code:
                continue
            diagnosis = diagnosis or await self._diagnose(key, wait.pod)
            # The list may lag behind the pod's answer, which the message quotes.
            wait = wait._replace(code=(diagnosis.get("obstacle") or {}).get("code") or wait.code)
            if last and last.code == wait.code:
                continue
            since = last.since if last else wait.since
            note = Sent(wait.code, last.number + 1 if last else 1, since, wait.pod)
            message = self._build_message(key, "waits", wait, note, name, now, diagnosis)
            if await self._deliver(name, target, message):
                self.memory.put(key, name, note)
                # Before the next message: a process that is killed then sends this one again.
                await self._save_memory(now)
            else:
                is_done = False
        return is_done

    async def _send_end(self, key: SubscribedWorkload, sent: Mapping[str, Sent], now: datetime) -> bool:
        """Send that the workload started; nothing if its pods are gone."""
        pod = next(iter(sent.values())).pod
        diagnosis = await self._diagnose(key, pod)
        state = diagnosis.get("state", "")
        if state in _WITHOUT_POD:
            self.memory.forget(key)
            await self._save_memory(now)
            return True
        if state not in _STARTED:
            # Its bind has no result yet, or the list lags behind.
            return False
        is_done = True
        for name, last in sent.items():
            target = self.policy.targets.get().get(name)
            note = last._replace(code="", number=last.number + 1)
            wait = DecisiveWait("", pod, 0, {}, last.since)
            message = self._build_message(key, "started", wait, note, name, now, diagnosis)
            if target is None or await self._deliver(name, target, message):
                self.memory.forget(key, name)
                await self._save_memory(now)
            else:
                is_done = False
        return is_done

    def _build_message(
        self,
        key: SubscribedWorkload,
        state: State,
        wait: DecisiveWait,
        note: Sent,
        target: str,
        now: datetime,
        diagnosis: Json,
    ) -> Message:
        link = f"{self.policy.link}/ui/pods/{quote(key.namespace)}/{quote(wait.pod)}" if self.policy.link else ""
        identifier = derive_id(key, target, note.since, note.number)
        headline = diagnosis.get("headline") or wait.sentence
        return Message(key, state, wait.code, wait.pod, wait.pods, headline, link, now, identifier)

    async def _diagnose(self, key: SubscribedWorkload, pod: str) -> Json:
        """Read the pod's diagnosis, whose headline has the cheapest proved change; empty if there is none."""
        path = f"{self.api.url}/api/v1/namespaces/{quote(key.namespace)}/pods/{quote(pod)}/diagnosis"
        limits = aiohttp.ClientTimeout(total=60.0)
        async with self.session.get(
            path,
            params={"exclusion": "false", "outlook": "false"},
            headers=self.api.build_headers(),
            ssl=self.api.build_context(),
            timeout=limits,
        ) as response:
            if response.status == 404:
                return {}
            response.raise_for_status()
            answer: dict[str, Any] = orjson.loads(await response.read())
            return answer

    async def _deliver(self, name: str, target: Target, message: Message) -> bool:
        """Deliver a message. Returns false if it is to be tried again; one that is refused for good is dropped."""
        if not self.is_leading():
            return False
        try:
            await deliver(self.session, target, message, self.policy.cluster)
        except DeliveryError as error:
            self.metrics.failures.labels(name).inc()
            level = logging.ERROR if error.is_final else logging.WARNING
            logger.log(level, "target %s did not take the message about %s: %s", name, message.key, error)
            return error.is_final
        self.metrics.sent.labels(name).inc()
        return True
