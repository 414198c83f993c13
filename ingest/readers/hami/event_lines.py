"""The steps for HAMi's event lines: each ends a filter call or a bind, or names the nodes refused for one code.

HAMi prints them from another goroutine, so the event line of an attempt may come after the pod's next attempt began.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Final

from engine.hami.reason_codes import ReasonCode
from ingest.lines import klog
from ingest.readers.hami.attempt import Bind, HamiAttempt
from ingest.readers.hami.grammar import Spelling
from ingest.readers.hami.open_attempts import MAX_TEXT, OpenHamiAttempts
from ingest.readers.hami.values import clamp_score, split_pod_name

MAX_MESSAGE: Final = 1_000_000

_SUCCESS: Final = re.compile(r"find fit node\((.+?)\)(?:, (\d{1,9}) nodes not fit, (\d{1,9}) nodes fit\((.*)\))?")
_CODE: Final = re.compile(r"\d{1,9} nodes ([^\s(]{1,100})\((.*)\)")
_NO_NODE: Final = re.compile(r"no available node, (?:(\d{1,9}) nodes do not meet|all node scores do not meet)")
NO_REQUEST: Final = "does not request any resource"
"""Message up to v2.9 of a filter call that judged no node, because the pod requests no devices that HAMi knows."""
_BOUND: Final = re.compile(r"Successfully binding node \[(.*?)\] to ")


class EventLines:
    def __init__(self, attempts: OpenHamiAttempts) -> None:
        self._attempts = attempts

    def read_event(self, text: bytes, spelling: Spelling) -> bool:
        pod, reason, message = (klog.read_quoted(text, key) for key in (b"object", b"reason", b"message"))
        now = self._attempts.read_time(text)
        if not pod or not reason or message is None or not now or not (names := split_pod_name(pod)):
            return False
        # The regular expressions that follow run over it.
        message = message[:MAX_MESSAGE]
        if reason == ReasonCode.FILTERING_SUCCEED:
            self._filter_succeeded(names, message, now, spelling)
        elif reason == ReasonCode.FILTERING_FAILED:
            self._filter_failed(names, message, now, spelling)
        elif reason in (ReasonCode.BINDING_SUCCEED, ReasonCode.BINDING_FAILED):
            self._bind_ended(pod, message, now, is_bound=reason == ReasonCode.BINDING_SUCCEED)
        return True

    def _filter_succeeded(self, names: tuple[str, str], message: str, now: datetime, spelling: Spelling) -> None:
        match = _SUCCESS.fullmatch(message)
        attempt = self._end_attempt(names, now, spelling, match[1] if match else "")
        if match:
            attempt.chosen = match[1]
        if match and match[2]:
            # HAMi's text counts nodes that do not fit and nodes that fit.
            attempt.offered = int(match[2]) + int(match[3])
            scores = dict(_parse_scores(match[4]))
            attempt.node_policy = _infer_policy(scores, attempt.chosen)
            for node, score in scores.items():
                # Event lines round scores to two decimals; node lines, at -v=4, do not.
                attempt.accept_node(node, score, is_exact=False)
        self._attempts.finish(attempt)

    def _filter_failed(self, names: tuple[str, str], message: str, now: datetime, spelling: Spelling) -> None:
        # HAMi prints a line per code with the nodes, and then one that ends the attempt.
        if code := _CODE.fullmatch(message):
            nodes = [node for node in code[2].split(",") if node]
            # Kept by pod until the last line comes, because only that one ends the attempt.
            self._attempts.memory.codes.setdefault("/".join(names), {})[code[1]] = nodes
            return
        if message == NO_REQUEST:
            self._pass_on(names, now)
            return
        no_node = _NO_NODE.fullmatch(message)
        chosen = "" if no_node else self._find_oldest_choice("/".join(names))
        attempt = self._end_attempt(names, now, spelling, chosen)
        attempt.offered = int(no_node[1]) if no_node and no_node[1] else None
        attempt.error = "" if no_node else message[:MAX_TEXT]
        attempt.message = message[:MAX_TEXT]
        self._attempts.finish(attempt)

    def _pass_on(self, names: tuple[str, str], now: datetime) -> None:
        """Forget the attempt of a pod without a request: HAMi has handed all nodes back."""
        if attempt := self._attempts.find(*names):
            self._attempts.memory.open.pop(attempt.pod, None)
        self._attempts.pass_on(attempt or self._attempts.without_start(*names, now), now)

    def _find_oldest_choice(self, pod: str) -> str:
        """Find the node that the pod's oldest attempt chose: an error may follow (writing it to the pod failed)."""
        oldest = next(iter(self._attempts.list_attempts(pod)), None)
        return oldest.chosen if oldest else ""

    def _end_attempt(self, names: tuple[str, str], now: datetime, spelling: Spelling, chosen: str) -> HamiAttempt:
        """End the attempt of an event line: the pod's oldest one that the line does not contradict."""
        pod = "/".join(names)
        memory = self._attempts.memory
        waiting = memory.waiting.get(pod, [])
        while waiting:
            attempt = waiting.pop(0)
            if not waiting:
                memory.waiting.pop(pod, None)
            # One that has ended by another line, with another choice, is an earlier attempt whose event line was lost.
            if not attempt.ended_at or attempt.chosen == chosen:
                break
            self._attempts.finish(attempt)
        else:
            latest = self._attempts.find(*names)
            attempt = latest or self._attempts.without_start(*names, now)
            memory.open.pop(pod, None)
        attempt.levels.add(spelling.level)
        attempt.codes = memory.codes.pop(pod, {})
        attempt.ended_at = now
        return attempt

    def _bind_ended(self, pod: str, message: str, now: datetime, *, is_bound: bool) -> None:
        binds = self._attempts.memory.binds
        match = _BOUND.match(message)
        bind = binds.get(pod) or Bind(match[1] if match else self._attempts.find_chosen(pod), now)
        error = "" if is_bound else bind.error or message[:MAX_TEXT] or "unknown error"
        binds[pod] = replace(bind, error=error, ended_at=bind.ended_at or now)
        self._attempts.finish_bind(pod)


def _parse_scores(listed: str) -> Iterator[tuple[str, float]]:
    """Parse ``node3:0.98,node4:0.65``, the best last."""
    for entry in listed.split(","):
        node, _, score = entry.rpartition(":")
        try:
            yield node, clamp_score(float(score))
        except ValueError:
            continue


def _infer_policy(scores: dict[str, float], chosen: str) -> str:
    """Infer the policy, which HAMi does not print: only spread takes the lowest score, others take the highest."""
    is_lowest = chosen in scores and scores[chosen] == min(scores.values()) < max(scores.values())
    return "spread" if is_lowest else ""
