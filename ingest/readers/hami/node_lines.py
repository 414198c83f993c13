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
from ingest.readers.hami.values import clamp_score, parse_json, split_pod_name
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
        attempt, node = self._attempts.find_by_line(text, spelling), klog.read_quoted(text, b"node")
        if attempt is None or not node:
            return False
        index = klog.read_integer(text, b"containerIndex")
        container = UNKNOWN if index is None or index < 0 else index
        attempt.refuse_node(node, (klog.read_quoted(text, b"reason") or "")[:MAX_TEXT], container)
        return True

    def run_out_of_devices(self, text: bytes, spelling: Spelling) -> bool:
        """Refuse a node with fewer devices than one container requests; HAMi tries none of them."""
        attempt, node = self._attempts.find_by_line(text, spelling), klog.read_quoted(text, b"node")
        requested = klog.read_integer(text, b"request devices nums")
        # Since v2.9 only devices of the requested type count, which the key then says.
        has = next((int(match[1]) for match in [_HAS_DEVICES.search(text)] if match), None)
        if attempt is None or requested is None:
            return False
        cause = f"{requested} requested" + ("" if has is None else f", the node has {has}")
        attempt.is_walking = True
        if node:
            attempt.refuse_node(node, ReasonCode.NODE_INSUFFICIENT_DEVICE.value, UNKNOWN, cause)
        else:
            attempt.shortages[cause] = attempt.shortages.get(cause, 0) + 1
        return True

    def begin_node(self, text: bytes, spelling: Spelling) -> bool:
        match, now = _FILTERING.search(text), self._attempts.read_time(text)
        if not match or not now:
            return False
        node, pod = (part.decode(errors="replace") for part in match.groups())
        names = split_pod_name(pod) or (UNNAMED_NAMESPACE, pod)
        attempt = None if split_pod_name(pod) else self._attempts.find_by_name(pod)
        attempt = attempt or self._attempts.find_or_open(*names, now)
        attempt.levels.add(spelling.level)
        attempt.is_walking = True
        filtering = self._attempts.memory.filtering
        if len(filtering) >= MAX_FILTERING:
            filtering.clear()
        filtering[node] = attempt.pod
        return True

    def filter_node_out(self, text: bytes, spelling: Spelling) -> bool:
        """Refuse a node for the pod for which it was filtered last: the line names no pod."""
        match = _FILTERED_OUT.search(text)
        if not match:
            return False
        node, reason, cause = (part.decode(errors="replace") for part in match.groups(b""))
        attempt = self._attempts.memory.open.get(self._attempts.memory.filtering.pop(node, ""))
        if attempt:
            attempt.levels.add(spelling.level)
            # The node's own line has counts, which are better.
            if node not in attempt.nodes:
                container = attempt.find_only_container()
                attempt.nodes[node] = NodeLine(
                    REFUSED, reason=reason[:MAX_TEXT], container=container, cause=cause[:MAX_TEXT]
                )
        return True

    def leave_unregistered(self, text: bytes, spelling: Spelling) -> bool:
        # HAMi's own line names no pod, and another line lists all these nodes.
        node = klog.read_quoted(text, b"node")
        if b' pod="' in text and node and (attempt := self._attempts.find_by_line(text, spelling)):
            attempt.is_walking = True
            if node not in attempt.unregistered:
                attempt.unregistered.append(node)
        return True

    def accept_node(self, text: bytes, spelling: Spelling) -> bool:
        attempt, node, score = (
            self._attempts.find_by_line(text, spelling),
            klog.read_quoted(text, b"node"),
            klog.read_decimal(text, b"score"),
        )
        if attempt is None or not node or score is None:
            return False
        attempt.accept_node(node, clamp_score(score), is_exact=True)
        return True

    def list_unregistered(self, text: bytes, spelling: Spelling) -> bool:
        """Keep the unregistered nodes for the only attempt that has not reached its nodes: the line names no pod."""
        nodes = parse_json(klog.read_tail(text, b"nodes"))
        if not isinstance(nodes, dict):
            return False
        candidates = [attempt for attempt in self._attempts.memory.open.values() if not attempt.is_walking]
        if len(candidates) == 1:
            candidates[0].levels.add(spelling.level)
            candidates[0].unregistered = list(nodes)
        return True
