"""The steps for lines that hold a cause without being a verdict: a node lost its devices, a pod holds some.

Their facts are wanted where a log is explained; where it is read into events, these lines are noise. A step returns
False where the line is not what its beginning promises; it is then counted as unknown.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

from engine.diagnosis.logged_facts import LoggedFact, LoggedKind
from ingest.lines import klog
from ingest.readers.hami.grammar import Spelling
from ingest.readers.hami.open_attempts import MAX_TEXT, OpenHamiAttempts
from ingest.readers.hami.values import parse_json

_PRINTED: Final = re.compile(rb"cleaning up node *nodeName *(\S{1,253}?) *deviceVendor *(\S{1,100})$")
"""Arguments that HAMi up to v2.9 prints without spaces between them."""
_NODE_DEVICE: Final = re.compile(
    rb"node (\S{1,253}) device ([^\s:]{1,100}):?.{0,200000}? (leave,|come node info=)", re.DOTALL
)
"""Up to v2.4."""
_ADMISSION: Final = re.compile(rb"admission hook for pod ([^\s/]{0,253})/(\S{0,253}), UID: \S* ?- (.{1,1000})$")
_ADDED_BEFORE_2_5: Final = re.compile(
    rb"Pod added: Name: (\S{1,253}), UID: \S+, Namespace: (\S{1,253}), NodeID: (\S{1,253})"
)
_IGNORED: Final = re.compile(rb'ignoring unrecognized (\S{1,317}="?.{0,300}"?) on pod ([^\s/]{1,253}/[^\s,]{1,253})')
_DENIED: Final = b"Denying admission"
_NODE_ASSIGNED: Final = b"Pod already has node assigned"
QUOTA_WITHIN: Final = timedelta(seconds=1)
"""The line with the numbers of a quota names no pod; the line with the pod follows at once."""
MAX_HOLDERS: Final = 1_000
"""Devices of one line."""


class CauseLines:
    def __init__(self, attempts: OpenHamiAttempts, judge_device: Callable[[bytes, Spelling], bool]) -> None:
        """Start without lines. ``judge_device``: the step for a line that refuses a device."""
        self._attempts, self._judge_device = attempts, judge_device
        self._quota: LoggedFact | None = None
        """Numbers of a quota that wait for the line that names the pod."""

    def _note(self, kind: LoggedKind, text: bytes, **fields: Any) -> bool:
        now = self._attempts.read_time(text)
        if now is None:
            return False
        self._attempts.note_fact(LoggedFact(kind, now, **fields))
        return True

    def drop_devices(self, text: bytes, _: Spelling) -> bool:
        node, vendor = klog.read_quoted(text, b"nodeName"), klog.read_quoted(text, b"deviceVendor")
        if node is None and (printed := _PRINTED.search(text)):
            node, vendor = (part.decode(errors="replace") for part in printed.groups())
        if not node:
            return False
        words = "unhealthy" if b"unhealthy" in text[:200] else "zero devices" if b"zero devices" in text[:200] else ""
        return self._note("devices dropped", text, node=node, vendor=vendor or "", words=words)

    def read_node_device(self, text: bytes, _: Spelling) -> bool:
        """Read v2.4's lines about a vendor's devices that come and leave; its other lines about nodes are noise."""
        match = _NODE_DEVICE.search(text, 0, 200_000)
        if match is None:
            return True
        node, vendor = (part.decode(errors="replace") for part in match.group(1, 2))
        return self._note(
            "devices dropped" if match[3] == b"leave," else "devices added", text, node=node, vendor=vendor
        )

    def skip_registration(self, text: bytes, _: Spelling) -> bool:
        node, vendor = klog.read_quoted(text, b"nodeName"), klog.read_quoted(text, b"deviceVendor")
        return bool(node) and self._note("registration skipped", text, node=node, vendor=vendor or "")

    def reserve_node(self, text: bytes, spelling: Spelling) -> bool:
        kind: LoggedKind = "mode not offered" if spelling.code == "no hami-core" else "node reserved"
        words = text[klog.find_message(text) :].split(b'" ')[0].strip(b'" ').decode(errors="replace")
        pod, node = klog.read_quoted(text, b"pod") or "", klog.read_quoted(text, b"node") or ""
        return bool(pod or node) and self._note(kind, text, node=node, pod=pod, words=words)

    def admit(self, text: bytes, _: Spelling) -> bool:
        match = _ADMISSION.search(text)
        if match is None:
            return True
        namespace, name, words = (part.decode(errors="replace") for part in match.groups())
        is_denied = _DENIED in text or _NODE_ASSIGNED in text
        if not is_denied and "different scheduler" not in words:
            return True
        # A pod of a Deployment has no name yet when the webhook sees it.
        pod = f"{namespace}/{name}" if name else f"{namespace}/"
        return self._note(
            "admission denied" if is_denied else "admission passed over", text, pod=pod, words=words[:MAX_TEXT]
        )

    def fail_validation(self, text: bytes, _: Spelling) -> bool:
        words = text.partition(b"failed:")[2].decode(errors="replace")[:MAX_TEXT]
        return self._note("admission denied", text, words=words)

    def set_lock(self, text: bytes, _: Spelling) -> bool:
        node, name, now = (
            klog.read_quoted(text, b"node"),
            klog.read_quoted(text, b"podName"),
            self._attempts.read_time(text),
        )
        if not node or now is None:
            return False
        self._attempts.set_lock(node, name or "", now)
        return True

    def release_lock(self, text: bytes, _: Spelling) -> bool:
        if node := klog.read_quoted(text, b"node"):
            self._attempts.release_lock(node)
        return bool(node)

    def add_pod(self, text: bytes, _: Spelling) -> bool:
        pod, node = klog.read_quoted(text, b"pod") or "", klog.read_quoted(text, b"nodeID")
        if old := _ADDED_BEFORE_2_5.search(text):
            name, namespace, node = (part.decode(errors="replace") for part in old.groups())
            pod = f"{namespace}/{name}"
        # At -v=5 another line with the same beginning says only that the cluster has the pod.
        if not node or "/" not in pod:
            return True
        by_vendor = parse_json(klog.read_tail(text, b"devices"))
        held = list(_iterate_devices(by_vendor))
        self._attempts.register_nodes(node, [uuid for uuid, _ in held])
        for uuid, numbers in held or [("", {})]:
            self._note("device held", text, node=node, pod=pod, device=uuid, numbers=numbers, words="Pod added")
        return True

    def delete_pod(self, text: bytes, _: Spelling) -> bool:
        pod = klog.read_quoted(text, b"pod") or ""
        node = klog.read_quoted(text, b"nodeID") or ""
        return True if "/" not in pod else self._note("devices released", text, node=node, pod=pod)

    def show_device(self, text: bytes, _: Spelling) -> bool:
        """Read the holders of a device from a dump of it (-v=5)."""
        if b'"PodInfos":[{' not in text:
            return True
        dump = parse_json(klog.read_tail(text, b"device detail"))
        device = dump.get("Device") if isinstance(dump, dict) else None
        if not isinstance(device, dict):
            return False
        pods = device.get("PodInfos")
        for pod in pods[:MAX_HOLDERS] if isinstance(pods, list) else ():
            self._note_holder(text, device, pod)
        return True

    def _note_holder(self, text: bytes, device: Mapping[str, Any], pod: Any) -> None:
        metadata, node = (pod.get("metadata"), pod.get("NodeID")) if isinstance(pod, dict) else (None, None)
        uuid = device.get("ID")
        if not isinstance(metadata, dict) or not isinstance(uuid, str):
            return
        name = f"{metadata.get('namespace')}/{metadata.get('name')}"
        node = node if isinstance(node, str) else ""
        if node:
            self._attempts.register_nodes(node, [uuid])
        numbers = next((numbers for other, numbers in _iterate_devices(pod.get("Devices")) if other == uuid), {})
        self._note("device held", text, node=node, pod=name, device=uuid, numbers=numbers, words="device status")

    def reject_request(self, text: bytes, _: Spelling) -> bool:
        message = text[klog.find_message(text) :].split(b'" ')[0].strip(b'" ').decode(errors="replace")
        container, amount = klog.read_quoted(text, b"container"), klog.read_quoted(text, b"request")
        words = message + (f" (container {container})" if container else "") + (f": {amount}" if amount else "")
        pod = self._attempts.find_collecting()
        return self._note("request rejected", text, pod=pod, words=words[:MAX_TEXT])

    def measure_quota(self, text: bytes, _: Spelling) -> bool:
        """Keep the numbers of a quota that is too small until a line names the pod."""
        keys = {"limit": b"limit", "used": b"used", "asked": b"alloc"}
        numbers = {name: number for name, key in keys.items() if (number := klog.read_integer(text, key)) is not None}
        now = self._attempts.read_time(text)
        if now is None or len(numbers) < len(keys):
            return False
        self._quota = LoggedFact(
            "quota exceeded", now, words="cores" if b"resourceCores" in text[:200] else "memory", numbers=numbers
        )
        return True

    def note_quota(self, text: bytes, spelling: Spelling) -> bool:
        """Note the numbers of a quota for the pod of the line; HAMi's own line names no device."""
        if b' device="' in text:
            return self._judge_device(text, spelling)
        quota, name = self._quota, klog.read_quoted(text, b"pod")
        now = self._attempts.read_time(text)
        if not name or now is None:
            return False
        attempt = self._attempts.find_by_name(name.rpartition("/")[2])
        if quota and now - quota.time <= QUOTA_WITHIN:
            pod = attempt.pod if attempt else name
            self._note("quota exceeded", text, pod=pod, words=quota.words, numbers=quota.numbers)
        return True

    def wait_for_leader(self, text: bytes, _: Spelling) -> bool:
        return self._note("not leader", text)

    def wait_for_cache(self, text: bytes, _: Spelling) -> bool:
        error = klog.read_quoted(text, b"err") or ""
        return self._note("cache not synced", text, words=error[:MAX_TEXT])

    def ignore_setting(self, text: bytes, _: Spelling) -> bool:
        match = _IGNORED.search(text)
        if match is None:
            return False
        setting, pod = (part.decode(errors="replace") for part in match.groups())
        return self._note("setting ignored", text, pod=pod, words=setting)


def _iterate_devices(by_vendor: Any) -> Iterator[tuple[str, Mapping[str, int]]]:
    """Iterate over the devices of a pod, as HAMi prints its bookings in JSON: by vendor, a list per container."""
    lists = by_vendor.values() if isinstance(by_vendor, dict) else ()
    count = 0
    for containers in lists:
        for devices in containers if isinstance(containers, list) else ():
            for device in devices if isinstance(devices, list) else ():
                uuid = device.get("UUID") if isinstance(device, dict) else None
                if not isinstance(uuid, str) or not uuid or count >= MAX_HOLDERS:
                    continue
                count += 1
                amounts = {"memory_mib": device.get("Usedmem"), "cores_percent": device.get("Usedcores")}
                yield uuid, {name: amount for name, amount in amounts.items() if type(amount) is int}
