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
from ingest.readers.hami.values import json_of
from schemas.events import FITS

_DEVICE: Final = re.compile(rb' pod="([^"\\]+)" device="([^"\\]+)"([^"]*)$')
"""What follows the message in most lines about a device."""
_DEVICE_INFO: Final = re.compile(rb"device info is:=?\S{0,3}\"?ID\"?:\"?([^\s\",}]{1,200})")
_SCHEDULE: Final = re.compile(rb"schedule ([^\s/]{1,253})/(\S{1,253}) to (\S{1,253}) (map\[.*)?")
_TAKEN: Final = re.compile(rb"\{\d+ (\S+) \S+ \d+ \d+")


class FilterLines:
    def __init__(self, attempts: OpenHamiAttempts) -> None:
        self._attempts = attempts

    def start(self, text: bytes, spelling: Spelling) -> bool:
        name, uid = klog.quoted(text, b"pod"), klog.quoted(text, b"uuid")
        # v2.5 spells the key in the plural.
        namespace = klog.quoted(text, b"namespace") or klog.quoted(text, b"namespaces")
        now = self._attempts.time_of(text)
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
        init = klog.whole_number(text, b"initContainerCount")
        if init is None:
            return False
        if attempt := self._without_requests(text, spelling):
            attempt.init_containers = max(init, 0)
        return True

    def _without_requests(self, text: bytes, spelling: Spelling) -> HamiAttempt | None:
        """The pod's open attempt, while its requests are not known yet.

        HAMi prints these lines again at the bind and at every update of the pod; those belong to no attempt.
        """
        attempt = self._attempts.memory.open.get(klog.quoted(text, b"pod") or "")
        if not attempt or attempt.requests is not None:
            return None
        attempt.levels.add(spelling.level)
        return attempt

    def name_container(self, text: bytes, spelling: Spelling) -> bool:
        index, name = klog.whole_number(text, b"containerIndex"), klog.quoted(text, b"containerName")
        if index is None or name is None or not 0 <= index < 1_000:
            return False
        if attempt := self._without_requests(text, spelling):
            is_init = b"init container" in text[:200]
            # HAMi counts containers from 0 again after the init containers.
            attempt.names[index + (0 if is_init else attempt.init_containers or 0)] = name
        return True

    def collect_requests(self, text: bytes, spelling: Spelling) -> bool:
        requests = parse_requests(json_of(klog.rest(text, b"requests") or klog.rest(text, b"counts")))
        if requests is None:
            return False
        names_pod = b' pod="' in text
        attempt = self._without_requests(text, spelling) if names_pod else self._claiming(text, requests, spelling)
        if attempt:
            attempt.levels.add(spelling.level)
            attempt.requests = requests
            self._attempts.has_several_requesting |= len(attempt.requesting()) > 1
        return True

    def _claiming(self, text: bytes, requests: list[ContainerRequest], spelling: Spelling) -> HamiAttempt | None:
        """Up to v2.5 the line names no pod; it belongs to the attempt without requests, if there is only one.

        If there is none, the log may lack the start of the attempt: then the requests are kept for it.
        """
        attempts = self._attempts.memory.open.values()
        found = [attempt for attempt in attempts if attempt.requests is None and not attempt.is_walking]
        if not found and (now := self._attempts.time_of(text)):
            self._attempts.memory.keep_unclaimed(UnclaimedRequests(requests, now, spelling.level))
        return found[0] if len(found) == 1 else None

    def forget(self, text: bytes, _: Spelling) -> bool:
        """HAMi passes a pod that requests no device through without a decision: this is not an attempt."""
        if attempt := self._attempts.by_name(klog.quoted(text, b"pod") or ""):
            del self._attempts.memory.open[attempt.pod]
        return True

    def try_container(self, text: bytes, spelling: Spelling) -> bool:
        if attempt := self._attempts.of_line(text, spelling):
            attempt.is_walking = True
        return attempt is not None

    def try_device(self, text: bytes, spelling: Spelling) -> bool:
        """Note for which container HAMi tries the node's devices, where several containers request any."""
        # A quarter of a million of these lines per attempt: they are skipped where they can't tell anything.
        if not self._attempts.has_several_requesting:
            return True
        attempt = self._attempts.of_line(text, spelling)
        if attempt is None:
            return False
        if len(attempt.requesting()) > 1 and (uuid := klog.quoted(text, b"device")):
            numbers = (klog.whole_number(text, key) for key in (b"Memreq", b"MemPercentagereq", b"Coresreq"))
            container = attempt.container_of(*(number or 0 for number in numbers))
            attempt.try_device(uuid, self._attempts.memory.devices, container)
        return True

    def judge_device(self, text: bytes, spelling: Spelling) -> bool:
        # Most lines at -v=5 have this form, within 600 bytes; the others take the slower way below.
        if usual := _DEVICE.search(text, 0, 600):
            attempt = self._attempts.memory.open.get(usual[1].decode(errors="replace"))
            # NumaNotFit also gives back the devices taken before it, which the usual way does not do.
            if attempt and spelling.code != ReasonCode.NUMA_NOT_FIT:
                attempt.levels.add(spelling.level)
                uuid, rest = usual[2].decode(errors="replace"), usual[3].decode(errors="replace")
                attempt.judge_device(uuid, "", spelling.code or FITS, rest, self._attempts.memory.devices)
                return True
        return self._judge_unusual(text, spelling)

    def _judge_unusual(self, text: bytes, spelling: Spelling) -> bool:
        """Read a line with keys in another order, with the device's node, or before any other line of its attempt."""
        attempt, node = self._attempts.of_line(text, spelling), klog.quoted(text, b"node") or ""
        if attempt is None:
            return False
        uuid = _device_of(text, node)
        if not uuid:
            # Up to v2.5 some lines name no device: nothing can be kept of them but that they were there.
            attempt.is_walking = True
            return bool(spelling.code)
        rest = text[text.rfind(b'"', 0, 400) + 1 : 600].decode(errors="replace") if len(text) < 600 else ""
        # Only schedulerlog's scheduler prints it, of a pod of which several containers request devices.
        index = klog.whole_number(text, b"containerIndex")
        container = UNKNOWN if index is None else index
        if spelling.code == ReasonCode.NUMA_NOT_FIT:
            attempt.give_back(uuid, node, rest, self._attempts.memory.devices, container)
            return True
        attempt.judge_device(uuid, node, spelling.code or FITS, rest, self._attempts.memory.devices, container)
        return True

    def no_node_fits(self, text: bytes, spelling: Spelling) -> bool:
        name = klog.quoted(text, b"pod") or text.rpartition(b" pod ")[2].decode(errors="replace").strip()
        now = self._attempts.time_of(text)
        # This line has the pod's name without the namespace.
        if (attempt := self._attempts.by_name(name)) and now:
            attempt.levels.add(spelling.level)
            attempt.ended_at, attempt.last_line_at, attempt.is_walking = now, now, True
        return bool(name)

    def choose(self, text: bytes, spelling: Spelling) -> bool:
        namespace, name = klog.quoted(text, b"podNamespace"), klog.quoted(text, b"podName")
        node, picked = klog.quoted(text, b"nodeID"), json_of(klog.rest(text, b"devices"))
        # Up to v2.5 the line is not structured.
        if node is None and (old := _SCHEDULE.search(text)):
            namespace, name, node = (part.decode(errors="replace") for part in old.group(1, 2, 3))
            picked = {"": [[{"UUID": uuid.decode(errors="replace")} for uuid in _TAKEN.findall(old[4] or b"")]]}
        now = self._attempts.time_of(text)
        if not namespace or not name or not node or not now:
            return False
        attempt = self._attempts.find_or_open(namespace, name, now)
        attempt.levels.add(spelling.level)
        attempt.pick(node, picked)
        attempt.ended_at, attempt.last_line_at = now, now
        return True


def _device_of(text: bytes, node: str) -> str:
    """The device's UUID, else its number as ``#6``, which is a name only on a node; empty where there is neither."""
    if uuid := klog.quoted(text, b"device"):
        return uuid
    if found := _DEVICE_INFO.search(text, 0, 4_000):
        return found[1].decode(errors="replace")
    numbers = (klog.whole_number(text, key) for key in (b"device", b"device index"))
    number = next((number for number in numbers if number is not None and number >= 0), None)
    return f"#{number}" if node and number is not None else ""
