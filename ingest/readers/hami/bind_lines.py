"""The steps for the lines of a bind, and for those that are printed at the start."""

from dataclasses import replace

from engine.diagnosis.logged_facts import LoggedFact
from engine.hami.node_lock import is_contention
from ingest.lines import klog
from ingest.readers.hami.attempt import Bind
from ingest.readers.hami.devices import parse_devices, parse_registration
from ingest.readers.hami.grammar import Spelling
from ingest.readers.hami.open_attempts import MAX_TEXT, OpenHamiAttempts
from ingest.readers.hami.settings_lines import add_flag, set_version
from ingest.readers.hami.values import parse_json


class BindLines:
    def __init__(self, attempts: OpenHamiAttempts) -> None:
        self._attempts = attempts

    def start_bind(self, text: bytes, _: Spelling) -> bool:
        name, namespace, node = (klog.read_quoted(text, key) for key in (b"pod", b"namespace", b"node"))
        now = self._attempts.read_time(text)
        if not name or not namespace or not node or not now or "/" in name + namespace:
            return False
        pod = f"{namespace}/{name}"
        self._attempts.finish_bind(pod)
        self._attempts.memory.binds[pod] = Bind(node, now)
        return True

    def fail_bind(self, text: bytes, _: Spelling) -> bool:
        error, now = klog.read_quoted(text, b"err"), self._attempts.read_time(text)
        if error is None or not now:
            return False
        pod = self._find_pod(text)
        if pod and (bind := self._attempts.memory.binds.get(pod)) and not bind.ended_at:
            failed = replace(bind, error=error[:MAX_TEXT] or "unknown error", ended_at=now)
            self._attempts.memory.binds[pod] = failed
            # Every other bind ends with an event line; here HAMi has no pod to record an event for.
            if b"Failed to get pod" in text[:200]:
                self._attempts.finish_bind(pod)
        return True

    def _find_pod(self, text: bytes) -> str | None:
        """Find the pod whose bind the line reports; only by the node, if one bind is open there."""
        name, namespace, node = (klog.read_quoted(text, key) for key in (b"pod", b"namespace", b"node"))
        if name and "/" in name:
            return name
        if name and namespace:
            return f"{namespace}/{name}"
        open_binds = [
            pod for pod, bind in self._attempts.memory.binds.items() if bind.node == node and not bind.ended_at
        ]
        return open_binds[0] if len(open_binds) == 1 else None

    def bound(self, text: bytes, _: Spelling) -> bool:
        pod, now = self._find_pod(text), self._attempts.read_time(text)
        if pod and now and (bind := self._attempts.memory.binds.get(pod)):
            self._attempts.memory.binds[pod] = replace(bind, ended_at=now)
        return bool(now)

    def end_bind(self, text: bytes, _: Spelling) -> bool:
        """End the only bind that is open; the line names no pod, so that of several none is meant for certain."""
        now = self._attempts.read_time(text)
        binds = self._attempts.memory.binds
        open_binds = [pod for pod, bind in binds.items() if not bind.ended_at or is_contention(bind.error)]
        if now and len(open_binds) == 1:
            (pod,) = open_binds
            binds[pod] = replace(binds[pod], error="", ended_at=now)
            self._attempts.finish_bind(pod)
        return now is not None


class StartLines:
    """Lines that HAMi prints when it starts: its flags, and the registrations, which join devices and nodes."""

    def __init__(self, attempts: OpenHamiAttempts) -> None:
        self._attempts = attempts

    def register(self, text: bytes, _: Spelling) -> bool:
        node, info = klog.read_quoted(text, b"nodeName"), parse_json(klog.read_tail(text, b"nodeInfo"))
        if not node or not isinstance(info, dict):
            return False
        # A list in some versions, an object with a list per vendor in others.
        devices = info.get("Devices")
        for items in devices.values() if isinstance(devices, dict) else [devices]:
            registered = parse_devices(node, items if isinstance(items, list) else ())
            self._attempts.register(registered)
        now = self._attempts.read_time(text)
        if now and b"Node device added" in text[:200]:
            vendor = klog.read_quoted(text, b"deviceVendor") or ""
            self._attempts.note_fact(LoggedFact("devices added", now, node=node, vendor=vendor))
        return True

    def read_flag(self, text: bytes, _: Spelling) -> bool:
        now = self._attempts.read_time(text)
        return now is not None and add_flag(self._attempts.memory.settings, text, now)

    def read_version(self, text: bytes, _: Spelling) -> bool:
        now = self._attempts.read_time(text)
        return now is not None and set_version(self._attempts.memory.settings, text, now)

    def list_devices(self, text: bytes, _: Spelling) -> bool:
        node, listed = klog.read_quoted(text, b"node"), klog.read_quoted(text, b"nodedevices")
        if not node or listed is None:
            return False
        self._attempts.register(parse_registration(node, listed))
        return True
