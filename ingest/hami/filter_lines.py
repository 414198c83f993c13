"""The lines of a filter call: what is asked, which nodes and cards are tried, how it ends.

Each step says whether the line is what it looks like.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

import orjson

from hami.reason_codes import ReasonCode
from ingest.hami.attempt import UNKNOWN, Attempt, read_requests
from ingest.hami.grammar import Spelling
from ingest.hami.open_attempts import MAX_TEXT, Book, names_of
from ingest.lines import klog
from schemas.events import FITS

_DEVICE: Final = re.compile(rb' pod="([^"\\]+)" device="([^"\\]+)"([^"]*)$')
"""How most lines about a card go on behind their message."""
_SUCCESS: Final = re.compile(r"find fit node\((.+?)\)(?:, (\d{1,9}) nodes not fit, (\d{1,9}) nodes fit\((.*)\))?")
_CODE: Final = re.compile(r"\d{1,9} nodes ([^\s(]{1,100})\((.*)\)")
_NO_NODE: Final = re.compile(r"no available node, (?:(\d{1,9}) nodes do not meet|all node scores do not meet)")
_SCHEDULE: Final = re.compile(rb"schedule ([^\s/]{1,253})/(\S{1,253}) to (\S{1,253}) (map\[.*)?")
_TAKEN: Final = re.compile(rb"\{\d+ (\S+) \S+ \d+ \d+")


class FilterLines:
    def __init__(self, book: Book) -> None:
        self._book = book

    def _attempt(self, text: bytes, spelling: Spelling) -> Attempt | None:
        """The open attempt of the pod that the line names; one begins with this line if none is open.

        None for a line that names no pod as Kubernetes names them, or has no time.
        """
        pod = klog.quoted(text, b"pod")
        attempt = self._book.memory.open.get(pod) if pod else None
        if attempt is None:
            if not pod or not (names := names_of(pod)) or not (now := self._book.time_of(text)):
                return None
            attempt = self._book.open(*names, "", now)
        attempt.levels.add(spelling.level)
        return attempt

    def start(self, text: bytes, spelling: Spelling) -> bool:
        name, uid = klog.quoted(text, b"pod"), klog.quoted(text, b"uuid")
        namespace = klog.quoted(text, b"namespace") or klog.quoted(text, b"namespaces")
        now = self._book.time_of(text)
        if not name or not namespace or not now or "/" in name + namespace:
            return False
        pod = f"{namespace}/{name}"
        if before := self._book.memory.open.pop(pod, None):
            self._book.wait(pod, before)
        self._book.open(namespace, name, (uid or "")[:MAX_TEXT], now).levels.add(spelling.level)
        return True

    def count_containers(self, text: bytes, spelling: Spelling) -> bool:
        init = klog.whole_number(text, b"initContainerCount")
        if init is None:
            return False
        if attempt := self._asked_for(text, spelling):
            attempt.init_containers = max(init, 0)
        return True

    def _asked_for(self, text: bytes, spelling: Spelling) -> Attempt | None:
        """The open attempt whose requests are being collected: HAMi does it again at the bind and on every update."""
        attempt = self._book.memory.open.get(klog.quoted(text, b"pod") or "")
        if not attempt or attempt.requests is not None:
            return None
        attempt.levels.add(spelling.level)
        return attempt

    def name_container(self, text: bytes, spelling: Spelling) -> bool:
        place, name = klog.whole_number(text, b"containerIndex"), klog.quoted(text, b"containerName")
        if place is None or name is None or not 0 <= place < 1_000:
            return False
        if attempt := self._asked_for(text, spelling):
            is_init = b"init container" in text[:200]
            attempt.names[place + (0 if is_init else attempt.init_containers or 0)] = name
        return True

    def collect_requests(self, text: bytes, spelling: Spelling) -> bool:
        said = klog.rest(text, b"requests") or klog.rest(text, b"counts")
        requests = read_requests(json_of(said))
        if requests is None:
            return False
        attempt = self._asked_for(text, spelling) if b' pod="' in text else self._only_one_that_asks()
        if attempt:
            attempt.levels.add(spelling.level)
            attempt.requests = requests
            self._book.ask_in_several |= len(attempt.asking()) > 1
        return True

    def _only_one_that_asks(self) -> Attempt | None:
        """Up to v2.5 the line names no pod; it belongs to the attempt that has none yet, if that is one alone."""
        asking = [each for each in self._book.memory.open.values() if each.requests is None and not each.is_walking]
        return asking[0] if len(asking) == 1 else None

    def forget(self, text: bytes, _: Spelling) -> bool:
        """A pod that asks for no device is handed back unjudged: there is no decision."""
        if attempt := self._book.by_name(klog.quoted(text, b"pod") or ""):
            del self._book.memory.open[attempt.pod]
        return True

    def unregistered(self, text: bytes, spelling: Spelling) -> bool:
        """The line names no pod; it belongs to the attempt that has not come to its nodes yet, if that is one alone."""
        nodes = json_of(klog.rest(text, b"nodes"))
        if not isinstance(nodes, dict):
            return False
        before = [each for each in self._book.memory.open.values() if not each.is_walking]
        if len(before) == 1:
            before[0].levels.add(spelling.level)
            before[0].unregistered = list(nodes)
        return True

    def try_container(self, text: bytes, spelling: Spelling) -> bool:
        if attempt := self._attempt(text, spelling):
            attempt.is_walking = True
        return attempt is not None

    def try_device(self, text: bytes, spelling: Spelling) -> bool:
        """Tells which container's turn it is on a node, where several containers ask."""
        if not self._book.ask_in_several:
            return True
        attempt = self._attempt(text, spelling)
        if attempt is None:
            return False
        if len(attempt.asking()) > 1 and (uuid := klog.quoted(text, b"device")):
            asked = (klog.whole_number(text, key) for key in (b"Memreq", b"MemPercentagereq", b"Coresreq"))
            attempt.try_device(uuid, self._book.memory.cards, attempt.container_of(*(number or 0 for number in asked)))
        return True

    def judge_device(self, text: bytes, spelling: Spelling) -> bool:
        if usual := _DEVICE.search(text, 0, 600):
            attempt = self._book.memory.open.get(usual[1].decode(errors="replace"))
            if attempt and spelling.code != ReasonCode.NUMA_NOT_FIT:
                attempt.levels.add(spelling.level)
                uuid, said = usual[2].decode(errors="replace"), usual[3].decode(errors="replace")
                attempt.judge_device(uuid, "", spelling.code or FITS, said, self._book.memory.cards)
                return True
        return self._judge_unusual(text, spelling)

    def _judge_unusual(self, text: bytes, spelling: Spelling) -> bool:
        """Keys in another order, a card with its node, or the first line of an attempt."""
        attempt, uuid = self._attempt(text, spelling), klog.quoted(text, b"device")
        if attempt is None or not uuid:
            return spelling.code == ReasonCode.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT and attempt is not None
        node = klog.quoted(text, b"node") or ""
        if spelling.code == ReasonCode.NUMA_NOT_FIT:
            attempt.give_back(uuid, node, self._book.memory.cards)
            return True
        said = text[text.rfind(b'"', 0, 400) + 1 : 600].decode(errors="replace") if len(text) < 600 else ""
        attempt.judge_device(uuid, node, spelling.code or FITS, said, self._book.memory.cards)
        return True

    def refuse_node(self, text: bytes, spelling: Spelling) -> bool:
        attempt, node = self._attempt(text, spelling), klog.quoted(text, b"node")
        if attempt is None or not node:
            return False
        place = klog.whole_number(text, b"containerIndex")
        container = UNKNOWN if place is None or place < 0 else place
        attempt.refuse_node(node, (klog.quoted(text, b"reason") or "")[:MAX_TEXT], container)
        return True

    def accept_node(self, text: bytes, spelling: Spelling) -> bool:
        attempt, node, score = self._attempt(text, spelling), klog.quoted(text, b"node"), klog.decimal(text, b"score")
        if attempt is None or not node or score is None:
            return False
        attempt.accept_node(node, _finite(score), is_exact=True)
        return True

    def no_node_fits(self, text: bytes, spelling: Spelling) -> bool:
        name = klog.quoted(text, b"pod") or text.rpartition(b" pod ")[2].decode(errors="replace").strip()
        now = self._book.time_of(text)
        if (attempt := self._book.by_name(name)) and now:
            attempt.levels.add(spelling.level)
            attempt.ended_at, attempt.last, attempt.is_walking = now, now, True
        return bool(name)

    def choose(self, text: bytes, spelling: Spelling) -> bool:
        namespace, name = klog.quoted(text, b"podNamespace"), klog.quoted(text, b"podName")
        node, picked = klog.quoted(text, b"nodeID"), json_of(klog.rest(text, b"devices"))
        if node is None and (old := _SCHEDULE.search(text)):
            namespace, name, node = (each.decode(errors="replace") for each in old.group(1, 2, 3))
            picked = {"": [[{"UUID": uuid.decode(errors="replace")} for uuid in _TAKEN.findall(old[4] or b"")]]}
        now = self._book.time_of(text)
        if not namespace or not name or not node or not now:
            return False
        attempt = self._book.memory.open.get(f"{namespace}/{name}") or self._book.open(namespace, name, "", now)
        attempt.levels.add(spelling.level)
        attempt.pick(node, picked)
        attempt.ended_at, attempt.last = now, now
        return True

    def succeed(self, names: tuple[str, str], message: str, now: datetime, spelling: Spelling) -> None:
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
        self._book.finish(attempt)

    def _ending(self, names: tuple[str, str], now: datetime, spelling: Spelling, chosen: str) -> Attempt:
        """The attempt that an event line ends: the oldest of the pod that it does not contradict."""
        pod = "/".join(names)
        waiting = self._book.memory.waiting.get(pod, [])
        while waiting:
            attempt = waiting.pop(0)
            if not waiting:
                self._book.memory.waiting.pop(pod, None)
            if not attempt.ended_at or attempt.chosen == chosen:
                break
            self._book.finish(attempt)
        else:
            latest = self._book.memory.open.get(pod)
            attempt = latest or Attempt(*names, "", now, now)
            self._book.memory.open.pop(pod, None)
        attempt.levels.add(spelling.level)
        attempt.codes = self._book.memory.codes.pop(pod, {})
        attempt.ended_at = now
        return attempt

    def fail(self, names: tuple[str, str], message: str, now: datetime, spelling: Spelling) -> None:
        if code := _CODE.fullmatch(message):
            nodes = [node for node in code[2].split(",") if node]
            self._book.memory.codes.setdefault("/".join(names), {})[code[1]] = nodes
            return
        no_node = _NO_NODE.fullmatch(message)
        attempt = self._failing(names, now, spelling, is_error=not no_node)
        attempt.offered = int(no_node[1]) if no_node and no_node[1] else None
        attempt.error = "" if no_node else message[:MAX_TEXT]
        self._book.finish(attempt)

    def _failing(self, names: tuple[str, str], now: datetime, spelling: Spelling, *, is_error: bool) -> Attempt:
        """An error may come after a node was chosen: writing it to the pod failed."""
        pod = "/".join(names)
        oldest = next(iter(self._book.memory.waiting.get(pod, ())), self._book.memory.open.get(pod))
        return self._ending(names, now, spelling, oldest.chosen if is_error and oldest else "")


def json_of(said: bytes | None) -> Any:
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
