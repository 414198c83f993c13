"""The lines of a bind, and those that say which card sits on which node."""

import re
from dataclasses import replace
from datetime import datetime
from typing import Final

from ingest.hami.events import Bind
from ingest.hami.filter_lines import json_of
from ingest.hami.grammar import Spelling
from ingest.hami.open_attempts import MAX_TEXT, Book
from ingest.hami.registry import cards_of_devices, cards_of_registration
from ingest.lines import klog

_BOUND: Final = re.compile(r"Successfully binding node \[(.*?)\] to ")


class BindLines:
    def __init__(self, book: Book) -> None:
        self._book = book

    def start_bind(self, text: bytes, _: Spelling) -> bool:
        name, namespace, node = (klog.quoted(text, key) for key in (b"pod", b"namespace", b"node"))
        now = self._book.time_of(text)
        if not name or not namespace or not node or not now or "/" in name + namespace:
            return False
        self._book.finish_bind(f"{namespace}/{name}")
        self._book.memory.binds[f"{namespace}/{name}"] = Bind(node, now)
        return True

    def fail_bind(self, text: bytes, _: Spelling) -> bool:
        error, now = klog.quoted(text, b"err"), self._book.time_of(text)
        if error is None or not now:
            return False
        pod = self._bind_of(text)
        if pod and (bind := self._book.memory.binds.get(pod)) and not bind.ended_at:
            self._book.memory.binds[pod] = replace(bind, error=error[:MAX_TEXT] or "unknown error", ended_at=now)
            if b"Failed to get pod" in text[:200]:  # HAMi has no pod to record an event for
                self._book.finish_bind(pod)
        return True

    def _bind_of(self, text: bytes) -> str | None:
        """The pod whose bind the line is about; by the node alone, if one bind is going on there."""
        name, namespace, node = (klog.quoted(text, key) for key in (b"pod", b"namespace", b"node"))
        if name and "/" in name:
            return name
        if name and namespace:
            return f"{namespace}/{name}"
        going_on = [pod for pod, bind in self._book.memory.binds.items() if bind.node == node and not bind.ended_at]
        return going_on[0] if len(going_on) == 1 else None

    def bound(self, text: bytes, _: Spelling) -> bool:
        pod, now = self._bind_of(text), self._book.time_of(text)
        if pod and now and (bind := self._book.memory.binds.get(pod)):
            self._book.memory.binds[pod] = replace(bind, ended_at=now)
        return bool(now)

    def conclude_bind(self, pod: str, message: str, now: datetime, *, is_bound: bool) -> None:
        said = _BOUND.match(message)
        bind = self._book.memory.binds.get(pod) or Bind(said[1] if said else self._book.chosen(pod), now)
        error = "" if is_bound else bind.error or message[:MAX_TEXT] or "unknown error"
        self._book.memory.binds[pod] = replace(bind, error=error, ended_at=bind.ended_at or now)
        self._book.finish_bind(pod)


class CardLines:
    def __init__(self, book: Book) -> None:
        self._book = book

    def register(self, text: bytes, _: Spelling) -> bool:
        node, info = klog.quoted(text, b"nodeName"), json_of(klog.rest(text, b"nodeInfo"))
        devices = info.get("Devices") if isinstance(info, dict) else None
        if not node or not isinstance(info, dict):
            return False
        for cards in devices.values() if isinstance(devices, dict) else [devices]:
            self._book.memory.cards.update(cards_of_devices(node, cards if isinstance(cards, list) else ()))
        return True

    def list_cards(self, text: bytes, _: Spelling) -> bool:
        node, listed = klog.quoted(text, b"node"), klog.quoted(text, b"nodedevices")
        if not node or listed is None:
            return False
        self._book.memory.cards.update(cards_of_registration(node, listed))
        return True
