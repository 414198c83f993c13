"""The steps for the lines about a node as a whole: whether it fits, and why not.

A step returns False where the line is not what its beginning promises; it is then counted as unknown.
"""

import re
from typing import Final

from engine.hami.reason_codes import ReasonCode
from ingest.lines import klog
from ingest.readers.hami.attempt import UNKNOWN, NodeLine
from ingest.readers.hami.grammar import Spelling
from ingest.readers.hami.open_attempts import MAX_TEXT, UNNAMED_NAMESPACE, OpenHamiAttempts
from ingest.readers.hami.values import finite, json_of, names_of
from schemas.events import REFUSED

MAX_FILTERING: Final = 20_000
"""Nodes whose filter line waits for the result."""

_HAS_DEVICES: Final = re.compile(rb" node device nums(?: \(type\))?=(\d{1,9})(?![\w.])")
_FILTERING: Final = re.compile(rb"Filtering node (\S{1,253}) for pod (\S{1,507})\"?$")
_FILTERED_OUT: Final = re.compile(rb"Node (\S{1,253}) filtered out: (.{1,4000}?)(?:, (requested .{1,200}))?$")


class NodeLines:
    def __init__(self, attempts: OpenHamiAttempts) -> None:
        self._attempts = attempts

    def refuse_node(self, text: bytes, spelling: Spelling) -> bool:
        attempt, node = self._attempts.of_line(text, spelling), klog.quoted(text, b"node")
        if attempt is None or not node:
            return False
        index = klog.whole_number(text, b"containerIndex")
        container = UNKNOWN if index is None or index < 0 else index
        attempt.refuse_node(node, (klog.quoted(text, b"reason") or "")[:MAX_TEXT], container)
        return True

    def run_out_of_devices(self, text: bytes, spelling: Spelling) -> bool:
        """A node has fewer devices than one container requests; HAMi tries none of them."""
        attempt, node = self._attempts.of_line(text, spelling), klog.quoted(text, b"node")
        asked = klog.whole_number(text, b"request devices nums")
        # Since v2.9 only devices of the requested type count, which the key then says.
        has = next((int(found[1]) for found in [_HAS_DEVICES.search(text)] if found), None)
        if attempt is None or asked is None:
            return False
        cause = f"{asked} requested" + ("" if has is None else f", the node has {has}")
        attempt.is_walking = True
        if node:
            attempt.refuse_node(node, ReasonCode.NODE_INSUFFICIENT_DEVICE.value, UNKNOWN, cause)
        else:
            attempt.shortages[cause] = attempt.shortages.get(cause, 0) + 1
        return True

    def begin_node(self, text: bytes, spelling: Spelling) -> bool:
        found, now = _FILTERING.search(text), self._attempts.time_of(text)
        if not found or not now:
            return False
        node, pod = (part.decode(errors="replace") for part in found.groups())
        names = names_of(pod) or (UNNAMED_NAMESPACE, pod)
        attempt = None if names_of(pod) else self._attempts.by_name(pod)
        attempt = attempt or self._attempts.find_or_open(*names, now)
        attempt.levels.add(spelling.level)
        attempt.is_walking = True
        filtering = self._attempts.memory.filtering
        if len(filtering) >= MAX_FILTERING:
            filtering.clear()
        filtering[node] = attempt.pod
        return True

    def filter_node_out(self, text: bytes, spelling: Spelling) -> bool:
        """The line names no pod: it is about the one that the node was last filtered for."""
        found = _FILTERED_OUT.search(text)
        if not found:
            return False
        node, reason, cause = (part.decode(errors="replace") for part in found.groups(b""))
        attempt = self._attempts.memory.open.get(self._attempts.memory.filtering.pop(node, ""))
        if attempt:
            attempt.levels.add(spelling.level)
            # The node's own line has counts, which are better.
            if node not in attempt.nodes:
                container = attempt.only_container()
                attempt.nodes[node] = NodeLine(
                    REFUSED, reason=reason[:MAX_TEXT], container=container, cause=cause[:MAX_TEXT]
                )
        return True

    def leave_unregistered(self, text: bytes, spelling: Spelling) -> bool:
        # HAMi's own line names no pod, and another line lists all these nodes.
        node = klog.quoted(text, b"node")
        if b' pod="' in text and node and (attempt := self._attempts.of_line(text, spelling)):
            attempt.is_walking = True
            if node not in attempt.unregistered:
                attempt.unregistered.append(node)
        return True

    def accept_node(self, text: bytes, spelling: Spelling) -> bool:
        attempt, node, score = (
            self._attempts.of_line(text, spelling),
            klog.quoted(text, b"node"),
            klog.decimal(text, b"score"),
        )
        if attempt is None or not node or score is None:
            return False
        attempt.accept_node(node, finite(score), is_exact=True)
        return True

    def unregistered(self, text: bytes, spelling: Spelling) -> bool:
        """The line names no pod; it belongs to the attempt that has not reached its nodes yet, if there is only one."""
        nodes = json_of(klog.rest(text, b"nodes"))
        if not isinstance(nodes, dict):
            return False
        found = [attempt for attempt in self._attempts.memory.open.values() if not attempt.is_walking]
        if len(found) == 1:
            found[0].levels.add(spelling.level)
            found[0].unregistered = list(nodes)
        return True
