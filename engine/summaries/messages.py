"""The event lines that people see in ``kubectl describe``, worded as HAMi words them.

Per-reason lines stand only where no node fits, as in HAMi; unlike HAMi's they also count the nodes refused for a bare
reason (``node unregistered``, ``NodeInsufficientDevice``), and their order is fixed.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from engine.hami.reason_codes import ReasonCode
from engine.summaries.cut import MAX_BYTES, cut
from engine.summaries.text import NODE_UNREGISTERED, refusal_text
from schemas.events import FITS, NOT_REACHED, PICKED, REFUSED, UNREGISTERED, AttemptSummarized, MessageEmitted, Refusal
from schemas.events.base import OFFERED_NODES

Ints = npt.NDArray[np.int64]

FILTERING_SUCCEED: Final = ReasonCode.FILTERING_SUCCEED.value
FILTERING_FAILED: Final = ReasonCode.FILTERING_FAILED.value
BINDING_SUCCEED: Final = ReasonCode.BINDING_SUCCEED.value
BINDING_FAILED: Final = ReasonCode.BINDING_FAILED.value

# More digits than any count of nodes has.
_MORE_BYTES: Final = len("... and 1000000000 more)")


class _Line(NamedTuple):
    """The words of a message."""

    severity: Literal["Normal", "Warning"]
    reason: str
    code: str
    text: str


def messages(summary: AttemptSummarized) -> list[MessageEmitted]:
    """The event lines about an attempt in the order of its phases; none about a phase that is not known."""
    found = []
    if summary.ended_at:
        found += [_message(summary, _first_reported(summary), line) for line in _filter_lines(summary)]
    if summary.bind:
        found += [_message(summary, summary.bind.ended_at, line) for line in _bind_lines(summary)]
    return found


def _first_reported(summary: AttemptSummarized) -> datetime:
    """The end of the filter as the report says it that was published first: a better source's must not make the same
    message another one."""
    ends = (report.ended_at for report in summary.reports if report.attempt_id == summary.attempt_id)
    return next(filter(None, ends), summary.ended_at or summary.started_at)


def filter_summary(summary: AttemptSummarized) -> str:
    """The filter in one line: its event message; for an attempt whose end is not known, words that say so."""
    if summary.ended_at is None:
        return "" if summary.bind and not summary.nodes else f"incomplete: {summary.missing}"
    if summary.error:
        return cut(summary.error)
    return _success(summary) if _fits(summary) else _failure(summary)


def bind_summary(summary: AttemptSummarized) -> str:
    """The bind in one line: its event message; empty before a result is known."""
    return next((line.text for line in _bind_lines(summary)), "")


def search_text(summary: AttemptSummarized) -> str:
    """What free-text search looks at: the messages, and every distinct refusal in words."""
    texts = [line.text for line in (*_filter_lines(summary), *_bind_lines(summary))] or [filter_summary(summary)]
    return "\n".join(
        [
            *texts,
            *sorted(map(refusal_text, summary.refusals)),
            *filter(None, [summary.scheduler_message, summary.missing]),
        ]
    )


def _filter_lines(summary: AttemptSummarized) -> list[_Line]:
    if summary.ended_at is None:
        return []
    last = filter_summary(summary)
    if _fits(summary):
        # HAMi writes per-reason lines only where no node fits.
        return [_Line("Normal", FILTERING_SUCCEED, "", last)]
    named = () if summary.error else _named_lines(summary)
    counted = [(code, f"{count} nodes {code}") for code, count in sorted(summary.refused_nodes.items())]
    return [_Line("Warning", FILTERING_FAILED, code, line) for code, line in [*named, *counted, ("", last)]]


def _bind_lines(summary: AttemptSummarized) -> list[_Line]:
    if not (bind := summary.bind):
        return []
    if bind.bound:
        # HAMi's words (``pkg/scheduler/event.go``), brackets included; people and alerts search for them.
        line = f"Successfully binding node [{bind.node}] to {summary.pod}"
        return [_Line("Normal", BINDING_SUCCEED, "", line)]
    return [_Line("Warning", BINDING_FAILED, "", cut(bind.error))]


def _message(summary: AttemptSummarized, reported_at: datetime, line: _Line) -> MessageEmitted:
    return MessageEmitted.model_construct(
        cluster=summary.cluster,
        attempt_id=summary.attempt_id,
        pod=summary.pod,
        scheduler=summary.scheduler,
        started_at=summary.started_at,
        reported_at=reported_at,
        severity=line.severity,
        reason=line.reason,
        code=line.code,
        message=line.text,
        workload=summary.description.workload if summary.description else "",
    )


def _fits(summary: AttemptSummarized) -> bool:
    return summary.chosen is not None and not summary.error


def _success(summary: AttemptSummarized) -> str:
    rows = np.flatnonzero(_is_one_of(summary, PICKED, FITS))
    names = [summary.nodes[row] for row in rows.tolist()]
    fit = _best_last(summary, list(zip(summary.score[rows].tolist(), names, strict=True)))
    # Offered nodes that no source names did not fit either, or they would be named.
    not_reached = int(_is_one_of(summary, NOT_REACHED).sum())
    refused = max(int(_is_one_of(summary, REFUSED, UNREGISTERED).sum()), summary.offered_nodes - len(fit) - not_reached)
    entries = [f"{name}:{score:.2f}" for score, name in fit]
    not_fit = f"{refused} nodes not fit, " if _offered_is_known(summary) else ""
    return shortened(f"find fit node({summary.chosen}), {not_fit}{len(fit)} nodes fit(", entries, len(entries))


def _failure(summary: AttemptSummarized) -> str:
    offered = f", {summary.offered_nodes} nodes do not meet" if _offered_is_known(summary) else ""
    line = f"no available node{offered}"
    counts = ", ".join(f"{count} {reason}" for reason, count in sorted(summary.refused_nodes.items()))
    return cut(f"{line}: {counts}") if counts else line


def _offered_is_known(summary: AttemptSummarized) -> bool:
    """A log may leave it open, and no number is made up then."""
    return any(OFFERED_NODES not in report.not_reported for report in summary.reports)


def _best_last(summary: AttemptSummarized, fit: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """Binpack takes the highest score, spread the lowest, of equals the name that sorts first; the chosen is last."""
    by_name = sorted(fit, key=lambda node: node[1], reverse=True)
    by_score = sorted(by_name, key=lambda node: node[0], reverse=summary.node_policy == "spread")
    return sorted(by_score, key=lambda node: node[1] == summary.chosen)


def _named_lines(summary: AttemptSummarized) -> Sequence[tuple[str, str]]:
    """Every reason code, and the line that names the nodes refused for it."""
    return [(code, _code_line(summary, code, rows)) for code, rows in nodes_by_code(summary)]


def nodes_by_code(summary: AttemptSummarized) -> list[tuple[str, Ints]]:
    """Every reason code, sorted, with the rows of the nodes refused for it; bare reasons count as codes."""
    rows: dict[str, list[Ints]] = {}
    # By refusal, of which there are few, rather than by node; the first group are the nodes without one.
    # Numbers of 16 bits are sorted by their digits, in a fifth of the time.
    is_short = len(summary.refusals) < 2**15
    order = np.argsort(summary.refusal.astype(np.int16) if is_short else summary.refusal, kind="stable")
    ends = np.cumsum(np.bincount(summary.refusal + 1, minlength=len(summary.refusals) + 1)).tolist()
    for refusal, start, end in zip(summary.refusals, ends, ends[1:], strict=False):
        for code in _codes(refusal):
            rows.setdefault(code, []).append(order[start:end])
    if UNREGISTERED in summary.verdicts:
        unexplained = order[: ends[0]]
        rows.setdefault(NODE_UNREGISTERED, []).append(unexplained[_is_one_of(summary, UNREGISTERED)[unexplained]])
    # The rows of one refusal are sorted already.
    joined = {code: _sorted(parts) for code, parts in sorted(rows.items())}
    return [(code, nodes) for code, nodes in joined.items() if len(nodes)]


def _sorted(parts: list[Ints]) -> Ints:
    return np.sort(np.concatenate(parts)) if len(parts) > 1 else parts[0]


def refused_by_code(summary: AttemptSummarized) -> dict[str, int]:
    """How many nodes ``nodes_by_code`` has for each code."""
    of_refusal = np.bincount(summary.refusal + 1, minlength=len(summary.refusals) + 1).tolist()
    unexplained = (summary.refusal < 0) & _is_one_of(summary, UNREGISTERED)
    counts = {NODE_UNREGISTERED: int(np.count_nonzero(unexplained))}
    for refusal, nodes in zip(summary.refusals, of_refusal[1:], strict=True):
        for code in _codes(refusal):
            counts[code] = counts.get(code, 0) + nodes
    return {code: count for code, count in sorted(counts.items()) if count}


def _codes(refusal: Refusal) -> list[str]:
    counted = [code for code, count in refusal.counts.items() if count]
    return [refusal.bare] if refusal.bare else [*counted, *refusal.uncounted]


def _is_one_of(summary: AttemptSummarized, *words: str) -> npt.NDArray[np.bool_]:
    """Per node: is its verdict one of ``words``?"""
    # With an entry for the empty table, which has no rows to point at it.
    flags: npt.NDArray[np.bool_] = np.array([*(word in words for word in summary.verdicts), False])[summary.verdict]
    return flags


def _code_line(summary: AttemptSummarized, code: str, rows: Ints) -> str:
    # No more names than fit are looked up: there may be thousands of nodes for each of a dozen codes.
    first = rows[:MAX_BYTES].tolist()
    return shortened(f"{len(rows)} nodes {code}(", map(summary.nodes.__getitem__, first), len(rows))


def shortened(head: str, entries: Iterable[str], count: int) -> str:
    """``head`` and the entries, joined with commas and closed with a bracket, in at most ``MAX_BYTES`` of UTF-8.

    Where they take more, the last ones are left out and counted: ``3 nodes X(node1,... and 2 more)``. ``count`` is how
    many entries there are; those that can't fit need not be given. A head that is too long by itself is cut.
    """
    head = cut(head, MAX_BYTES // 2)
    budget = MAX_BYTES - len(head.encode())
    kept, size = list[str](), 0
    for entry in entries:
        kept.append(f"{entry},")
        size += len(kept[-1].encode())
        if size > budget:
            break
    if len(kept) == count and size <= budget:
        # The bracket takes the place of the last comma.
        return f"{head}{''.join(kept)[:-1]})"
    while kept and size > budget - _MORE_BYTES:
        size -= len(kept.pop().encode())
    return f"{head}{''.join(kept)}... and {count - len(kept)} more)"
