"""The steps for the lines of a filter call: the request, the nodes and devices that HAMi tries, the choice.

A step returns False where the line is not what its beginning promises; it is then counted as unknown.
"""

import re
from typing import Final

from engine.hami.reason_codes import ReasonCode
from ingest.lines import klog
from ingest.readers.hami.attempt import UNKNOWN, HamiAttempt
from ingest.readers.hami.container_requests import ContainerRequest, parse_requests
from ingest.readers.hami.grammar import Spelling
from ingest.readers.hami.memory import UnclaimedRequests
from ingest.readers.hami.open_attempts import MAX_TEXT, OpenHamiAttempts
from ingest.readers.hami.values import parse_json
from schemas.events import FITS

_DEVICE: Final = re.compile(rb' pod="([^"\\]+)" device="([^"\\]+)"([^"]*)$')
"""The text after the message in most lines about a device."""
_DEVICE_INFO: Final = re.compile(rb"device info is:=?\S{0,3}\"?ID\"?:\"?([^\s\",}]{1,200})")
_SCHEDULE: Final = re.compile(rb"schedule ([^\s/]{1,253})/(\S{1,253}) to (\S{1,253}) (map\[.*)?")
_TAKEN: Final = re.compile(rb"\{\d+ (\S+) \S+ \d+ \d+")


class FilterLines:
    def __init__(self, attempts: OpenHamiAttempts) -> None:
        self._attempts = attempts

    def start(self, text: bytes, spelling: Spelling) -> bool:
        name, uid = klog.read_quoted(text, b"pod"), klog.read_quoted(text, b"uuid")
        # v2.5 spells the key in the plural.
        namespace = klog.read_quoted(text, b"namespace") or klog.read_quoted(text, b"namespaces")
        now = self._attempts.read_time(text)
        if not name or not namespace or not now or "/" in name + namespace:
            return False
        pod = f"{namespace}/{name}"
        self._attempts.memory.unclaimed.clear()
        # The event line of the attempt before may still come, from another goroutine.
        if before := self._attempts.memory.open.pop(pod, None):
            self._attempts.wait(pod, before)
        self._attempts.open(namespace, name, (uid or "")[:MAX_TEXT], now).levels.add(spelling.level)
        return True

    def count_containers(self, text: bytes, spelling: Spelling) -> bool:
        init = klog.read_integer(text, b"initContainerCount")
        if init is None:
            return False
        if attempt := self._without_requests(text, spelling):
            attempt.init_containers = max(init, 0)
        return True

    def _without_requests(self, text: bytes, spelling: Spelling) -> HamiAttempt | None:
        """Find the pod's open attempt if its requests are not known yet.

        HAMi prints these lines again at the bind and at every update of the pod; those belong to no attempt.
        """
        attempt = self._attempts.memory.open.get(klog.read_quoted(text, b"pod") or "")
        if not attempt or attempt.requests is not None:
            return None
        attempt.levels.add(spelling.level)
        return attempt

    def name_container(self, text: bytes, spelling: Spelling) -> bool:
        index, name = klog.read_integer(text, b"containerIndex"), klog.read_quoted(text, b"containerName")
        if index is None or name is None or not 0 <= index < 1_000:
            return False
        if attempt := self._without_requests(text, spelling):
            is_init = b"init container" in text[:200]
            # HAMi counts containers from 0 again after the init containers.
            attempt.names[index + (0 if is_init else attempt.init_containers or 0)] = name
        return True

    def collect_requests(self, text: bytes, spelling: Spelling) -> bool:
        requests = parse_requests(parse_json(klog.read_tail(text, b"requests") or klog.read_tail(text, b"counts")))
        if requests is None:
            return False
        names_pod = b' pod="' in text
        attempt = self._without_requests(text, spelling) if names_pod else self._find_claiming(text, requests, spelling)
        if attempt:
            attempt.levels.add(spelling.level)
            attempt.requests = requests
            self._attempts.has_several_requesting |= len(attempt.list_requesting()) > 1
        return True

    def _find_claiming(self, text: bytes, requests: list[ContainerRequest], spelling: Spelling) -> HamiAttempt | None:
        """Find the attempt of a line without a pod (up to v2.5): the only one without requests.

        If there is none, the log may lack the start of the attempt: then the requests are kept for it.
        """
        attempts = self._attempts.memory.open.values()
        candidates = [attempt for attempt in attempts if attempt.requests is None and not attempt.is_walking]
        if not candidates and (now := self._attempts.read_time(text)):
            self._attempts.memory.keep_unclaimed(UnclaimedRequests(requests, now, spelling.level))
        return candidates[0] if len(candidates) == 1 else None

    def forget(self, text: bytes, _: Spelling) -> bool:
        """Forget the attempt of a pod that requests no device: HAMi passes it through without a decision."""
        attempt, now = self._attempts.find_by_name(klog.read_quoted(text, b"pod") or ""), self._attempts.read_time(text)
        if attempt and now:
            del self._attempts.memory.open[attempt.pod]
            self._attempts.pass_on(attempt, now)
        return True

    def try_container(self, text: bytes, spelling: Spelling) -> bool:
        if attempt := self._attempts.find_by_line(text, spelling):
            attempt.is_walking = True
        return attempt is not None

    def try_device(self, text: bytes, spelling: Spelling) -> bool:
        """Note for which container HAMi tries the node's devices, where several containers request any."""
        # A quarter of a million of these lines per attempt: they are skipped where they can't tell anything.
        if not self._attempts.has_several_requesting:
            return True
        attempt = self._attempts.find_by_line(text, spelling)
        if attempt is None:
            return False
        if len(attempt.list_requesting()) > 1 and (uuid := klog.read_quoted(text, b"device")):
            numbers = (klog.read_integer(text, key) for key in (b"Memreq", b"MemPercentagereq", b"Coresreq"))
            container = attempt.find_container(*(number or 0 for number in numbers))
            attempt.try_device(uuid, self._attempts.memory.devices, container)
        return True

    def judge_device(self, text: bytes, spelling: Spelling) -> bool:
        # Most lines at -v=5 have this form, within 600 bytes; the others take the slower way below.
        if usual := _DEVICE.search(text, 0, 600):
            attempt = self._attempts.memory.open.get(usual[1].decode(errors="replace"))
            # NumaNotFit also gives back the devices taken before it, which the usual way does not do.
            if attempt and spelling.code != ReasonCode.NUMA_NOT_FIT:
                attempt.levels.add(spelling.level)
                uuid, tail = usual[2].decode(errors="replace"), usual[3].decode(errors="replace")
                attempt.judge_device(uuid, "", spelling.code or FITS, tail, self._attempts.memory.devices)
                return True
        return self._judge_unusual(text, spelling)

    def _judge_unusual(self, text: bytes, spelling: Spelling) -> bool:
        """Read a line with keys in another order, with the device's node, or before any other line of its attempt."""
        attempt, node = self._attempts.find_by_line(text, spelling), klog.read_quoted(text, b"node") or ""
        if attempt is None:
            return False
        uuid = _identify_device(text, node)
        if not uuid:
            # Up to v2.5 some lines name no device: nothing can be kept of them but that they were there.
            attempt.is_walking = True
            return bool(spelling.code)
        tail = text[text.rfind(b'"', 0, 400) + 1 : 600].decode(errors="replace") if len(text) < 600 else ""
        # Only schedulerlog's scheduler prints it, of a pod of which several containers request devices.
        index = klog.read_integer(text, b"containerIndex")
        container = UNKNOWN if index is None else index
        if spelling.code == ReasonCode.NUMA_NOT_FIT:
            attempt.give_back(uuid, node, tail, self._attempts.memory.devices, container)
            return True
        attempt.judge_device(uuid, node, spelling.code or FITS, tail, self._attempts.memory.devices, container)
        return True

    def end_without_node(self, text: bytes, spelling: Spelling) -> bool:
        name = klog.read_quoted(text, b"pod") or text.rpartition(b" pod ")[2].decode(errors="replace").strip()
        now = self._attempts.read_time(text)
        # This line has the pod's name without the namespace.
        if (attempt := self._attempts.find_by_name(name)) and now:
            attempt.levels.add(spelling.level)
            attempt.ended_at, attempt.last_line_at, attempt.is_walking = now, now, True
        return bool(name)

    def choose(self, text: bytes, spelling: Spelling) -> bool:
        namespace, name = klog.read_quoted(text, b"podNamespace"), klog.read_quoted(text, b"podName")
        node, picked = klog.read_quoted(text, b"nodeID"), parse_json(klog.read_tail(text, b"devices"))
        # Up to v2.5 the line is not structured.
        if node is None and (old := _SCHEDULE.search(text)):
            namespace, name, node = (part.decode(errors="replace") for part in old.group(1, 2, 3))
            picked = {"": [[{"UUID": uuid.decode(errors="replace")} for uuid in _TAKEN.findall(old[4] or b"")]]}
        now = self._attempts.read_time(text)
        if not namespace or not name or not node or not now:
            return False
        attempt = self._attempts.find_or_open(namespace, name, now)
        attempt.levels.add(spelling.level)
        attempt.pick(node, picked)
        attempt.ended_at, attempt.last_line_at = now, now
        return True


def _identify_device(text: bytes, node: str) -> str:
    """Identify the device: its UUID, else its number on the node as ``#6``; empty if the line has neither."""
    if uuid := klog.read_quoted(text, b"device"):
        return uuid
    if match := _DEVICE_INFO.search(text, 0, 4_000):
        return match[1].decode(errors="replace")
    numbers = (klog.read_integer(text, key) for key in (b"device", b"device index"))
    number = next((number for number in numbers if number is not None and number >= 0), None)
    return f"#{number}" if node and number is not None else ""
