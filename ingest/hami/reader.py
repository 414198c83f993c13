"""From lines to events: which attempt a line belongs to, and when an attempt is over.

Lines of many pods interleave, and HAMi prints an attempt's last event line from another goroutine, perhaps after the
pod's next attempt has begun; so attempts wait for their event lines in the order in which they started. An attempt
ends with the event line that says how it ended. One whose end never comes is told as it is known: when ten minutes of
log have passed it by, when too many wait, or when the log is closed.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final

import orjson
from pydantic import TypeAdapter, ValidationError

from ingest import klog
from ingest.hami.attempt import UNKNOWN, Attempt, read_requests
from ingest.hami.grammar import NOISE, Spelling, grammar
from ingest.hami.registry import Cards, cards_of_devices, cards_of_registration
from ingest.hami.telling import Bind, about, tell, tell_bind
from ingest.lines import Lines
from ingest.reader import EVENT, Counts
from ingest.reader import NOISE as NOISE_OUTCOME
from schemas.events import FITS, AttemptEvent

PATIENCE: Final = timedelta(minutes=10)
"""Of log time without a line about an attempt, after which its end is not waited for."""
MAX_OPEN: Final = 1_000
"""Attempts that are held at once; of more, the one that was silent longest is told as it is known."""
MAX_ROWS: Final = 500_000
"""Device and node lines that are held at once, over all attempts."""
MAX_WAITING: Final = 8
"""Attempts of one pod that wait for their event lines."""
MAX_REMEMBERED: Final = 20_000
"""Pods whose latest attempt is remembered, so that a bind finds it."""
MAX_TEXT: Final = 4_000
MAX_LINE: Final = 1_000_000
"""Longer lines that belong to an attempt are not believed to be HAMi's."""

_DEVICE: Final = re.compile(rb' pod="([^"\\]+)" device="([^"\\]+)"([^"]*)$')
"""How most lines about a card go on behind their message."""
_SUCCESS: Final = re.compile(r"find fit node\((.+?)\)(?:, (\d{1,9}) nodes not fit, (\d{1,9}) nodes fit\((.*)\))?")
_CODE: Final = re.compile(r"\d{1,9} nodes ([^\s(]{1,100})\((.*)\)")
_NO_NODE: Final = re.compile(r"no available node, (?:(\d{1,9}) nodes do not meet|all node scores do not meet)")
_BOUND: Final = re.compile(r"Successfully binding node \[(.*?)\] to ")
_SCHEDULE: Final = re.compile(rb"schedule ([^\s/]{1,253})/(\S{1,253}) to (\S{1,253}) (map\[.*)?")
_TAKEN: Final = re.compile(rb"\{\d+ (\S+) \S+ \d+ \d+")


@dataclass(slots=True)
class Finished:
    """What a bind has to know of the attempt that chose the node."""

    uid: str
    started: datetime
    chosen: str


@dataclass(slots=True)
class Memory:
    """All that the reader remembers between two lines."""

    open: dict[str, Attempt] = field(default_factory=dict)
    """By pod."""
    waiting: dict[str, list[Attempt]] = field(default_factory=dict)
    """Attempts whose pod has begun another one, before their event line was there."""
    codes: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    """Per pod, of the event lines so far: reason code to nodes."""
    binds: dict[str, Bind] = field(default_factory=dict)
    finished: dict[str, Finished] = field(default_factory=dict)
    cards: Cards = field(default_factory=dict)
    rows: int = 0


_MEMORY: Final = TypeAdapter(Memory)


class HamiLog:
    """Reads what HAMi's scheduler prints. See ``ingest.reader.Reader``."""

    def __init__(self, scheduler: str = "hami-scheduler", cards: Cards | None = None, zone: tzinfo = UTC) -> None:
        """``cards``: the cards of a node list, so that device lines find their nodes. ``zone``: of the log's times."""
        self.counts = Counts()
        self._scheduler, self._zone = scheduler, zone
        self._memory = Memory(cards=dict(cards or {}))
        self._told: list[AttemptEvent] = []
        self._ask_in_several = True
        self._steps: dict[str, Callable[[bytes, Spelling], bool]] = {
            "attempt started": self._start,
            "containers counted": self._count_containers,
            "container named": self._name_container,
            "requests collected": self._collect_requests,
            "nothing asked": self._forget,
            "nodes unregistered": self._unregistered,
            "container tried": self._try_container,
            "device tried": self._try_device,
            "device fits": self._judge_device,
            "device refused": self._judge_device,
            "node refused": self._refuse_node,
            "node fits": self._accept_node,
            "no node fits": self._no_node_fits,
            "node chosen": self._choose,
            "event": self._event,
            "bind started": self._start_bind,
            "bind failed": self._fail_bind,
            "bound": self._bound,
            "cards registered": self._register,
            "cards listed": self._list_cards,
        }
        self._reference = datetime(1970, 1, 1, tzinfo=UTC)

    def feed(self, lines: Lines) -> Iterator[AttemptEvent]:
        spelling_of, steps = grammar().spelling, self._steps
        told = noise = 0
        for place, text in enumerate(lines.texts):
            at = text.find(b"] ", 20, 300)
            spelling = spelling_of(text, at + 2) if at > 0 else None
            if spelling is None:
                if text:
                    self.counts.unknown(text)
                continue
            if spelling.says == NOISE:
                noise += 1
                continue
            self._reference = (lines.times and lines.times[place]) or lines.origin.reference
            if len(text) > MAX_LINE or not steps[spelling.says](text, spelling):
                self.counts.unknown(text)
                continue
            told += 1
            if self._told:
                yield from self._take()
        self.counts.lines[EVENT] += told
        self.counts.lines[NOISE_OUTCOME] += noise

    def close(self) -> Iterator[AttemptEvent]:
        memory = self._memory
        for pod in [*memory.waiting, *memory.open]:
            for attempt in self._held(pod):
                self._finish(attempt)
            memory.waiting.pop(pod, None)
            memory.open.pop(pod, None)
        for pod in list(memory.binds):
            self._finish_bind(pod)
        memory.codes.clear()
        yield from self._take()

    def waits_for(self) -> set[str]:
        """The attempts and binds that were begun and not told."""
        memory = self._memory
        held = [*memory.open.values(), *(each for waiting in memory.waiting.values() for each in waiting)]
        return {f"{each.pod} {each.started}" for each in held} | {f"bind {pod}" for pod in memory.binds}

    def save(self) -> bytes:
        return _MEMORY.dump_json(self._memory)

    def restore(self, saved: bytes) -> None:
        try:
            self._memory = _MEMORY.validate_json(saved)
        except ValidationError as error:
            raise ValueError(f"another version's memory of the log: {error.errors()[0]['msg']}") from None

    def _take(self) -> list[AttemptEvent]:
        told, self._told = self._told, []
        self.counts.events += len(told)
        return told

    # Which attempt a line belongs to.

    def _attempt(self, text: bytes, spelling: Spelling) -> Attempt | None:
        """The open attempt of the pod that the line names; one begins with this line if none is open.

        None for a line that names no pod as Kubernetes names them, or has no time.
        """
        pod = klog.quoted(text, b"pod")
        attempt = self._memory.open.get(pod) if pod else None
        if attempt is None:
            if not pod or not (names := _names(pod)) or not (now := self._time(text)):
                return None
            attempt = self._open(*names, "", now)
        attempt.levels.add(spelling.level)
        return attempt

    def _open(self, namespace: str, name: str, uid: str, now: datetime) -> Attempt:
        attempt = Attempt(namespace, name, uid, now, now)
        self._memory.open[attempt.pod] = attempt
        self._hold_within_bounds(now)
        self._ask_in_several = any(len(each.asking()) > 1 for each in self._memory.open.values())
        return attempt

    def _time(self, text: bytes) -> datetime | None:
        return klog.moment(text, self._reference, self._zone)

    def _by_name(self, name: str) -> Attempt | None:
        """The only open attempt of a pod with this name in any namespace; the line does not say the namespace."""
        found = [attempt for attempt in self._memory.open.values() if attempt.name == name]
        return found[0] if len(found) == 1 else None

    def _start(self, text: bytes, spelling: Spelling) -> bool:
        name, uid = klog.quoted(text, b"pod"), klog.quoted(text, b"uuid")
        namespace = klog.quoted(text, b"namespace") or klog.quoted(text, b"namespaces")
        now = self._time(text)
        if not name or not namespace or not now or "/" in name + namespace:
            return False
        pod = f"{namespace}/{name}"
        if before := self._memory.open.pop(pod, None):
            self._wait(pod, before)
        self._open(namespace, name, (uid or "")[:MAX_TEXT], now).levels.add(spelling.level)
        return True

    def _wait(self, pod: str, attempt: Attempt) -> None:
        waiting = self._memory.waiting.setdefault(pod, [])
        waiting.append(attempt)
        if len(waiting) > MAX_WAITING:
            self._finish(waiting.pop(0))

    def _hold_within_bounds(self, now: datetime) -> None:
        """At the start of an attempt, and by the log's own clock: so the events follow from the text alone."""
        memory = self._memory
        held = [*memory.open.values(), *(each for waiting in memory.waiting.values() for each in waiting)]
        rows = sum(len(each.devices) + len(each.nodes) for each in held) if len(held) > 1 else 0
        if len(held) <= MAX_OPEN and rows <= MAX_ROWS and now - min(each.last for each in held) <= PATIENCE:
            return
        for attempt in sorted(held, key=lambda each: each.last):
            if attempt.started == now or (
                len(held) <= MAX_OPEN and rows <= MAX_ROWS and now - attempt.last <= PATIENCE
            ):
                break
            held.remove(attempt)
            rows -= len(attempt.devices) + len(attempt.nodes)
            self._drop(attempt)
            self._finish(attempt)
        for pod in [pod for pod, bind in memory.binds.items() if now - bind.started > PATIENCE]:
            self._finish_bind(pod)

    def _held(self, pod: str) -> list[Attempt]:
        """The pod's attempts that are not told yet, in the order in which they started."""
        latest = self._memory.open.get(pod)
        return [*self._memory.waiting.get(pod, ()), *([latest] if latest else [])]

    def _drop(self, attempt: Attempt) -> None:
        memory = self._memory
        if memory.open.get(attempt.pod) is attempt:
            del memory.open[attempt.pod]
            return
        left = [each for each in memory.waiting.pop(attempt.pod, ()) if each is not attempt]
        if left:
            memory.waiting[attempt.pod] = left

    # What is asked.

    def _count_containers(self, text: bytes, spelling: Spelling) -> bool:
        init = klog.whole_number(text, b"initContainerCount")
        if init is None:
            return False
        if attempt := self._asked_for(text, spelling):
            attempt.init_containers = max(init, 0)
        return True

    def _asked_for(self, text: bytes, spelling: Spelling) -> Attempt | None:
        """The open attempt whose requests are being collected: HAMi does it again at the bind and on every update."""
        attempt = self._memory.open.get(klog.quoted(text, b"pod") or "")
        if not attempt or attempt.requests is not None:
            return None
        attempt.levels.add(spelling.level)
        return attempt

    def _name_container(self, text: bytes, spelling: Spelling) -> bool:
        place, name = klog.whole_number(text, b"containerIndex"), klog.quoted(text, b"containerName")
        if place is None or name is None or not 0 <= place < 1_000:
            return False
        if attempt := self._asked_for(text, spelling):
            is_init = b"init container" in text[:200]
            attempt.names[place + (0 if is_init else attempt.init_containers or 0)] = name
        return True

    def _collect_requests(self, text: bytes, spelling: Spelling) -> bool:
        said = klog.rest(text, b"requests") or klog.rest(text, b"counts")
        requests = read_requests(_json(said))
        if requests is None:
            return False
        attempt = self._asked_for(text, spelling) if b' pod="' in text else self._only_one_that_asks()
        if attempt:
            attempt.levels.add(spelling.level)
            attempt.requests = requests
            self._ask_in_several |= len(attempt.asking()) > 1
        return True

    def _only_one_that_asks(self) -> Attempt | None:
        """Up to v2.5 the line names no pod; it belongs to the attempt that has none yet, if that is one alone."""
        asking = [each for each in self._memory.open.values() if each.requests is None and not each.is_walking]
        return asking[0] if len(asking) == 1 else None

    def _forget(self, text: bytes, _: Spelling) -> bool:
        """A pod that asks for no device is handed back unjudged: there is no decision."""
        if attempt := self._by_name(klog.quoted(text, b"pod") or ""):
            del self._memory.open[attempt.pod]
        return True

    # The walk.

    def _unregistered(self, text: bytes, spelling: Spelling) -> bool:
        """The line names no pod; it belongs to the attempt that has not come to its nodes yet, if that is one alone."""
        nodes = _json(klog.rest(text, b"nodes"))
        if not isinstance(nodes, dict):
            return False
        before = [each for each in self._memory.open.values() if not each.is_walking]
        if len(before) == 1:
            before[0].levels.add(spelling.level)
            before[0].unregistered = list(nodes)
        return True

    def _try_container(self, text: bytes, spelling: Spelling) -> bool:
        if attempt := self._attempt(text, spelling):
            attempt.is_walking = True
        return attempt is not None

    def _try_device(self, text: bytes, spelling: Spelling) -> bool:
        """Tells which container's turn it is on a node, where several containers ask."""
        if not self._ask_in_several:
            return True
        attempt = self._attempt(text, spelling)
        if attempt is None:
            return False
        if len(attempt.asking()) > 1 and (uuid := klog.quoted(text, b"device")):
            asked = (klog.whole_number(text, key) for key in (b"Memreq", b"MemPercentagereq", b"Coresreq"))
            attempt.try_device(uuid, self._memory.cards, attempt.container_of(*(number or 0 for number in asked)))
        return True

    def _judge_device(self, text: bytes, spelling: Spelling) -> bool:
        if usual := _DEVICE.search(text, 0, 600):
            attempt = self._memory.open.get(usual[1].decode(errors="replace"))
            if attempt and spelling.code != "NumaNotFit":
                attempt.levels.add(spelling.level)
                uuid, said = usual[2].decode(errors="replace"), usual[3].decode(errors="replace")
                attempt.judge_device(uuid, "", spelling.code or FITS, said, self._memory.cards)
                return True
        return self._judge_unusual(text, spelling)

    def _judge_unusual(self, text: bytes, spelling: Spelling) -> bool:
        """Keys in another order, a card with its node, or the first line of an attempt."""
        attempt, uuid = self._attempt(text, spelling), klog.quoted(text, b"device")
        if attempt is None or not uuid:
            return spelling.code == "ExclusiveDeviceAllocateConflict" and attempt is not None
        node = klog.quoted(text, b"node") or ""
        if spelling.code == "NumaNotFit":
            attempt.give_back(uuid, node, self._memory.cards)
            return True
        said = text[text.rfind(b'"', 0, 400) + 1 : 600].decode(errors="replace") if len(text) < 600 else ""
        attempt.judge_device(uuid, node, spelling.code or FITS, said, self._memory.cards)
        return True

    def _refuse_node(self, text: bytes, spelling: Spelling) -> bool:
        attempt, node = self._attempt(text, spelling), klog.quoted(text, b"node")
        if attempt is None or not node:
            return False
        place = klog.whole_number(text, b"containerIndex")
        container = UNKNOWN if place is None or place < 0 else place
        attempt.refuse_node(node, (klog.quoted(text, b"reason") or "")[:MAX_TEXT], container)
        return True

    def _accept_node(self, text: bytes, spelling: Spelling) -> bool:
        attempt, node, score = self._attempt(text, spelling), klog.quoted(text, b"node"), klog.decimal(text, b"score")
        if attempt is None or not node or score is None:
            return False
        attempt.accept_node(node, _finite(score), is_exact=True)
        return True

    # The end.

    def _no_node_fits(self, text: bytes, spelling: Spelling) -> bool:
        name = klog.quoted(text, b"pod") or text.rpartition(b" pod ")[2].decode(errors="replace").strip()
        now = self._time(text)
        if (attempt := self._by_name(name)) and now:
            attempt.levels.add(spelling.level)
            attempt.ended, attempt.last, attempt.is_walking = now, now, True
        return bool(name)

    def _choose(self, text: bytes, spelling: Spelling) -> bool:
        namespace, name = klog.quoted(text, b"podNamespace"), klog.quoted(text, b"podName")
        node, picked = klog.quoted(text, b"nodeID"), _json(klog.rest(text, b"devices"))
        if node is None and (old := _SCHEDULE.search(text)):
            namespace, name, node = (each.decode(errors="replace") for each in old.group(1, 2, 3))
            picked = {"": [[{"UUID": uuid.decode(errors="replace")} for uuid in _TAKEN.findall(old[4] or b"")]]}
        now = self._time(text)
        if not namespace or not name or not node or not now:
            return False
        attempt = self._memory.open.get(f"{namespace}/{name}") or self._open(namespace, name, "", now)
        attempt.levels.add(spelling.level)
        attempt.pick(node, picked)
        attempt.ended, attempt.last = now, now
        return True

    def _event(self, text: bytes, spelling: Spelling) -> bool:
        pod, reason, message = (klog.quoted(text, key) for key in (b"object", b"reason", b"message"))
        now = self._time(text)
        if not pod or not reason or message is None or not now or not (names := _names(pod)):
            return False
        message = message[:MAX_LINE]
        if reason == "FilteringSucceed":
            self._succeed(names, message, now, spelling)
        elif reason == "FilteringFailed":
            self._fail(names, message, now, spelling)
        elif reason in ("BindingSucceed", "BindingFailed"):
            self._conclude_bind(pod, message, now, is_bound=reason == "BindingSucceed")
        return True

    def _ending(self, names: tuple[str, str], now: datetime, spelling: Spelling, chosen: str) -> Attempt:
        """The attempt that an event line ends: the oldest of the pod that it does not contradict."""
        pod = "/".join(names)
        waiting = self._memory.waiting.get(pod, [])
        while waiting:
            attempt = waiting.pop(0)
            if not waiting:
                self._memory.waiting.pop(pod, None)
            if not attempt.ended or attempt.chosen == chosen:
                break
            self._finish(attempt)
        else:
            latest = self._memory.open.get(pod)
            attempt = latest or Attempt(*names, "", now, now)
            self._memory.open.pop(pod, None)
        attempt.levels.add(spelling.level)
        attempt.codes = self._memory.codes.pop(pod, {})
        attempt.ended = now
        return attempt

    def _succeed(self, names: tuple[str, str], message: str, now: datetime, spelling: Spelling) -> None:
        said = _SUCCESS.fullmatch(message)
        attempt = self._ending(names, now, spelling, said[1] if said else "")
        if said:
            attempt.chosen = said[1]
        if said and said[2]:
            attempt.offered = int(said[2]) + int(said[3])
            scores = dict(_scores(said[4]))
            attempt.node_policy = _policy(scores, attempt.chosen)
            for node, score in scores.items():
                attempt.accept_node(node, score, is_exact=False)
        self._finish(attempt)

    def _fail(self, names: tuple[str, str], message: str, now: datetime, spelling: Spelling) -> None:
        if code := _CODE.fullmatch(message):
            nodes = [node for node in code[2].split(",") if node]
            self._memory.codes.setdefault("/".join(names), {})[code[1]] = nodes
            return
        no_node = _NO_NODE.fullmatch(message)
        attempt = self._failing(names, now, spelling, is_error=not no_node)
        attempt.offered = int(no_node[1]) if no_node and no_node[1] else None
        attempt.error = "" if no_node else message[:MAX_TEXT]
        self._finish(attempt)

    def _failing(self, names: tuple[str, str], now: datetime, spelling: Spelling, *, is_error: bool) -> Attempt:
        """An error may come after a node was chosen: writing it to the pod failed."""
        pod = "/".join(names)
        oldest = next(iter(self._memory.waiting.get(pod, ())), self._memory.open.get(pod))
        return self._ending(names, now, spelling, oldest.chosen if is_error and oldest else "")

    def _finish(self, attempt: Attempt) -> None:
        """Tell it, and remember who it was: a bind may follow."""
        if not attempt.nodes and not attempt.ended and not attempt.devices:
            return
        told, reading = tell(attempt, self._memory.cards, self._scheduler)
        self._told += told
        if attempt.ended and not reading.not_said:
            self.counts.attempts_complete += 1
        else:
            self.counts.attempts_incomplete += 1
        finished = self._memory.finished
        finished.pop(attempt.pod, None)
        finished[attempt.pod] = Finished(attempt.uid, attempt.started, "" if attempt.error else attempt.chosen)
        while len(finished) > MAX_REMEMBERED:
            del finished[next(iter(finished))]

    # The bind.

    def _start_bind(self, text: bytes, _: Spelling) -> bool:
        name, namespace, node = (klog.quoted(text, key) for key in (b"pod", b"namespace", b"node"))
        now = self._time(text)
        if not name or not namespace or not node or not now or "/" in name + namespace:
            return False
        self._finish_bind(f"{namespace}/{name}")
        self._memory.binds[f"{namespace}/{name}"] = Bind(node, now)
        return True

    def _fail_bind(self, text: bytes, _: Spelling) -> bool:
        error, now = klog.quoted(text, b"err"), self._time(text)
        if error is None or not now:
            return False
        pod = self._bind_of(text)
        if pod and (bind := self._memory.binds.get(pod)) and not bind.ended:
            self._memory.binds[pod] = replace(bind, error=error[:MAX_TEXT] or "unknown error", ended=now)
            if b"Failed to get pod" in text[:200]:  # HAMi has no pod to record an event for
                self._finish_bind(pod)
        return True

    def _bind_of(self, text: bytes) -> str | None:
        """The pod whose bind the line is about; by the node alone, if one bind is going on there."""
        name, namespace, node = (klog.quoted(text, key) for key in (b"pod", b"namespace", b"node"))
        if name and "/" in name:
            return name
        if name and namespace:
            return f"{namespace}/{name}"
        going_on = [pod for pod, bind in self._memory.binds.items() if bind.node == node and not bind.ended]
        return going_on[0] if len(going_on) == 1 else None

    def _bound(self, text: bytes, _: Spelling) -> bool:
        pod, now = self._bind_of(text), self._time(text)
        if pod and now and (bind := self._memory.binds.get(pod)):
            self._memory.binds[pod] = replace(bind, ended=now)
        return bool(now)

    def _conclude_bind(self, pod: str, message: str, now: datetime, *, is_bound: bool) -> None:
        said = _BOUND.match(message)
        bind = self._memory.binds.get(pod) or Bind(said[1] if said else self._chosen(pod), now)
        error = "" if is_bound else bind.error or message[:MAX_TEXT] or "unknown error"
        self._memory.binds[pod] = replace(bind, error=error, ended=bind.ended or now)
        self._finish_bind(pod)

    def _chosen(self, pod: str) -> str:
        finished = self._memory.finished.get(pod)
        return finished.chosen if finished else ""

    def _finish_bind(self, pod: str) -> None:
        """Tell a bind whose outcome was read; one without an outcome says nothing."""
        bind = self._memory.binds.pop(pod, None)
        if not bind or not bind.ended or not (names := _names(pod)):
            return
        attempt = self._chooser(names, pod, bind)
        self._told.append(tell_bind(about(attempt, self._scheduler), bind, bind.ended))

    def _chooser(self, names: tuple[str, str], pod: str, bind: Bind) -> Attempt:
        """The attempt that chose the node: the latest that was told, or one that still waits for its event line."""
        for attempt in reversed(self._held(pod)):
            if attempt.chosen and attempt.started <= bind.started:
                return attempt
        if finished := self._memory.finished.get(pod):
            return Attempt(*names, finished.uid, finished.started, finished.started)
        return Attempt(*names, "", bind.started, bind.started)

    # Which card sits where.

    def _register(self, text: bytes, _: Spelling) -> bool:
        node, info = klog.quoted(text, b"nodeName"), _json(klog.rest(text, b"nodeInfo"))
        devices = info.get("Devices") if isinstance(info, dict) else None
        if not node or not isinstance(info, dict):
            return False
        for cards in devices.values() if isinstance(devices, dict) else [devices]:
            self._memory.cards.update(cards_of_devices(node, cards if isinstance(cards, list) else ()))
        return True

    def _list_cards(self, text: bytes, _: Spelling) -> bool:
        node, listed = klog.quoted(text, b"node"), klog.quoted(text, b"nodedevices")
        if not node or listed is None:
            return False
        self._memory.cards.update(cards_of_registration(node, listed))
        return True


def _names(pod: str) -> tuple[str, str] | None:
    namespace, _, name = pod.partition("/")
    return (namespace, name) if namespace and name and "/" not in name else None


def _json(said: bytes | None) -> Any:
    try:
        return orjson.loads(said or b"")
    except orjson.JSONDecodeError:
        return None


def _finite(score: float) -> float:
    """HAMi divides by totals of zero; the contract knows finite scores of 32 bits alone."""
    return score if abs(score) < 3.4e38 else 0.0


def _scores(said: str) -> Iterator[tuple[str, float]]:
    """``node3:0.98,node4:0.65``, the best last."""
    for entry in said.split(","):
        node, _, score = entry.rpartition(":")
        try:
            yield node, _finite(float(score))
        except ValueError:
            continue


def _policy(scores: dict[str, float], chosen: str) -> str:
    """Only spread takes the lowest score. Binpack takes the highest, as does any policy that HAMi does not know."""
    is_lowest = chosen in scores and scores[chosen] == min(scores.values()) < max(scores.values())
    return "spread" if is_lowest else ""
