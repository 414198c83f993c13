"""Event lines that people see in ``kubectl describe``, worded as HAMi words them.

Lines per reason exist only if no node fits, as in HAMi; unlike HAMi's they also count the nodes refused for a bare
reason (``node unregistered``, ``NodeInsufficientDevice``), and their order is fixed.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from engine.hami.reason_codes import ReasonCode
from engine.summaries.named_pods import hide_other_pods
from engine.summaries.text import MAX_BYTES, NODE_UNREGISTERED, cut, join_within_limit, write_refusal
from schemas.codec.chunking import divide_sizes
from schemas.events import (
    FITS,
    NOT_REACHED,
    PICKED,
    REFUSED,
    UNREGISTERED,
    AttemptSummarized,
    MessagesEmitted,
    PodMessage,
    Refusal,
)
from schemas.events.base import OFFERED_NODES
from schemas.events.messages import RECORD_CHARACTERS, MessageLine

Ints = npt.NDArray[np.int64]

FILTERING_SUCCEED: Final = ReasonCode.FILTERING_SUCCEED.value
FILTERING_FAILED: Final = ReasonCode.FILTERING_FAILED.value
BINDING_SUCCEED: Final = ReasonCode.BINDING_SUCCEED.value
BINDING_FAILED: Final = ReasonCode.BINDING_FAILED.value


class _Line(NamedTuple):
    """Words of a message."""

    severity: Literal["Normal", "Warning"]
    reason: str
    code: str
    text: str


def build_messages(summary: AttemptSummarized) -> list[MessagesEmitted]:
    """Build the event lines about an attempt in the order of its phases; a phase without a report has no lines."""
    messages = list[MessagesEmitted]()
    if summary.ended_at:
        messages += _build_records(summary, _find_first_end(summary), _write_filter_lines(summary))
    if summary.bind:
        messages += _build_records(summary, summary.bind.ended_at, _write_bind_lines(summary))
    return messages


def move_messages(messages: Sequence[MessagesEmitted], summary: AttemptSummarized) -> list[MessagesEmitted]:
    """Return the lines of a filter for another attempt of the pod that has the same lines."""
    times = {"started_at": summary.started_at, "reported_at": _find_first_end(summary)}
    return [event.model_copy(update={"attempt_id": summary.attempt_id, **times}) for event in messages]


def list_messages(summary: AttemptSummarized) -> list[PodMessage]:
    """List the event lines about an attempt one by one."""
    return [message for event in build_messages(summary) for message in event.list_messages()]


def _find_first_end(summary: AttemptSummarized) -> datetime:
    """Return the end of the filter from the report that was published first: a better source must not turn a message
    into another one."""
    ends = (report.ended_at for report in summary.reports if report.attempt_id == summary.attempt_id)
    return next(filter(None, ends), summary.ended_at or summary.started_at)


def summarize_filter(summary: AttemptSummarized) -> str:
    """Summarize the filter in one line: its event message, or, if the attempt's end is not reported, words that say
    so."""
    if summary.ended_at is None:
        return "" if summary.bind and not summary.nodes else f"incomplete: {summary.missing}"
    if summary.error:
        return cut(summary.error)
    return _describe_success(summary) if _fits(summary) else _describe_failure(summary)


def summarize_bind(summary: AttemptSummarized) -> str:
    """Summarize the bind in one line: its event message; empty before a result is reported."""
    return next((line.text for line in _write_bind_lines(summary)), "")


def build_search_text(summary: AttemptSummarized) -> str:
    """Build the text for free-text search: the messages, and every distinct refusal in words."""
    texts = [line.text for line in (*_write_filter_lines(summary), *_write_bind_lines(summary))] or [
        summarize_filter(summary)
    ]
    return "\n".join(
        [
            *texts,
            *sorted(map(write_refusal, summary.refusals)),
            *filter(None, [summary.scheduler_message, summary.missing]),
        ]
    )


def _write_filter_lines(summary: AttemptSummarized) -> list[_Line]:
    if summary.ended_at is None:
        return []
    last = summarize_filter(summary)
    if _fits(summary):
        # HAMi writes lines per reason only if no node fits.
        return [_Line("Normal", FILTERING_SUCCEED, "", last)]
    named = () if summary.error else _write_code_lines(summary)
    counted = [(code, f"{count} nodes {code}") for code, count in _list_unnamed_counts(summary)]
    return [_Line("Warning", FILTERING_FAILED, code, line) for code, line in [*named, *counted, ("", last)]]


def _list_unnamed_counts(summary: AttemptSummarized) -> list[tuple[str, int]]:
    """List the counts by reason, except those whose nodes a reader worked out: their line names them."""
    named = count_refused_by_code(summary) if summary.reconstruction else {}
    return sorted((code, count) for code, count in summary.refused_nodes.items() if named.get(code) != count)


def _write_bind_lines(summary: AttemptSummarized) -> list[_Line]:
    if not (bind := summary.bind):
        return []
    if bind.bound:
        # HAMi's words (``pkg/scheduler/event.go``), brackets included; people and alerts search for them.
        line = f"Successfully binding node [{bind.node}] to {summary.pod}"
        return [_Line("Normal", BINDING_SUCCEED, "", line)]
    return [_Line("Warning", BINDING_FAILED, "", cut(bind.error))]


def _build_records(
    summary: AttemptSummarized, reported_at: datetime, lines: Sequence[_Line]
) -> Iterator[MessagesEmitted]:
    """Build the records of one phase, whose lines have one severity and one reason."""
    sizes = np.array([len(line.code) + len(line.text) for line in lines], np.int64)
    for part in (lines[run] for run in divide_sizes(sizes, RECORD_CHARACTERS)):
        yield MessagesEmitted.model_construct(
            cluster=summary.cluster,
            attempt_id=summary.attempt_id,
            pod=summary.pod,
            scheduler=summary.scheduler,
            started_at=summary.started_at,
            reported_at=reported_at,
            severity=part[0].severity,
            reason=part[0].reason,
            lines=[
                # It leaves for the pod's own namespace: as an event there, and in alerts and webhooks.
                MessageLine.model_construct(code=line.code, message=hide_other_pods(line.text, summary.pod.namespace))
                for line in part
            ],
            workload=summary.description.workload if summary.description else "",
        )


def _fits(summary: AttemptSummarized) -> bool:
    return summary.chosen is not None and not summary.error


def _describe_success(summary: AttemptSummarized) -> str:
    rows = np.flatnonzero(_flag_verdicts(summary, PICKED, FITS))
    names = [summary.nodes[row] for row in rows.tolist()]
    fit = _sort_best_last(summary, list(zip(summary.score[rows].tolist(), names, strict=True)))
    # Offered nodes that no source names did not fit either, because fitting nodes are named.
    not_reached = int(_flag_verdicts(summary, NOT_REACHED).sum())
    refused = max(
        int(_flag_verdicts(summary, REFUSED, UNREGISTERED).sum()), summary.offered_nodes - len(fit) - not_reached
    )
    entries = [f"{name}:{score:.2f}" for score, name in fit]
    not_fit = f"{refused} nodes not fit, " if _has_offered_count(summary) else ""
    return join_within_limit(f"find fit node({summary.chosen}), {not_fit}{len(fit)} nodes fit(", entries, len(entries))


def _describe_failure(summary: AttemptSummarized) -> str:
    offered = f", {summary.offered_nodes} nodes do not meet" if _has_offered_count(summary) else ""
    line = f"no available node{offered}"
    counts = ", ".join(f"{count} {reason}" for reason, count in sorted(summary.refused_nodes.items()))
    return cut(f"{line}: {counts}") if counts else line


def _has_offered_count(summary: AttemptSummarized) -> bool:
    """Tell whether a report has the number of offered nodes. A log may leave it open, and no number is made up then."""
    return any(OFFERED_NODES not in report.not_reported for report in summary.reports)


def _sort_best_last(summary: AttemptSummarized, fit: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """Sort the best node last, and the chosen node behind it: binpack takes the highest score, spread the lowest, of
    equal ones the name that sorts first."""
    by_name = sorted(fit, key=lambda node: node[1], reverse=True)
    by_score = sorted(by_name, key=lambda node: node[0], reverse=summary.node_policy == "spread")
    return sorted(by_score, key=lambda node: node[1] == summary.chosen)


def _write_code_lines(summary: AttemptSummarized) -> Sequence[tuple[str, str]]:
    """List every reason code with the line that names the nodes refused for it."""
    return [(code, _write_code_line(summary, code, rows)) for code, rows in list_nodes_by_code(summary)]


def list_nodes_by_code(summary: AttemptSummarized) -> list[tuple[str, Ints]]:
    """List every reason code, sorted, with the rows of the nodes refused for it; bare reasons count as codes."""
    # A byte for each refusal that has the code. One more, which stays 0, because -1 is a node without a refusal.
    having: dict[str, bytearray] = {}
    size = len(summary.refusals) + 1
    for position, refusal in enumerate(summary.refusals):
        for code in _list_codes(refusal):
            having.setdefault(code, bytearray(size))[position] = 1
    flags = {code: np.frombuffer(having[code], np.bool_)[summary.refusal] for code in having}
    if UNREGISTERED in summary.verdicts:
        unexplained = (summary.refusal < 0) & _flag_verdicts(summary, UNREGISTERED)
        flags[NODE_UNREGISTERED] = unexplained | flags.get(NODE_UNREGISTERED, False)
    rows = [(code, np.flatnonzero(flags[code])) for code in sorted(flags)]
    return [(code, nodes) for code, nodes in rows if len(nodes)]


def count_refused_by_code(summary: AttemptSummarized) -> dict[str, int]:
    """Count the nodes that ``list_nodes_by_code`` lists for each code."""
    of_refusal = np.bincount(summary.refusal + 1, minlength=len(summary.refusals) + 1).tolist()
    unexplained = (summary.refusal < 0) & _flag_verdicts(summary, UNREGISTERED)
    counts = {NODE_UNREGISTERED: int(np.count_nonzero(unexplained))}
    for refusal, nodes in zip(summary.refusals, of_refusal[1:], strict=True):
        for code in _list_codes(refusal):
            counts[code] = counts.get(code, 0) + nodes
    return {code: count for code, count in sorted(counts.items()) if count}


def count_nodes_by_reason(summary: AttemptSummarized) -> dict[str, int]:
    """Count the refused nodes by reason, named or not; a count by the scheduler holds against verdicts that a reader
    worked out."""
    named, reconstruction = count_refused_by_code(summary), summary.reconstruction
    if reconstruction is None:
        return summary.refused_nodes | named
    is_proved = reconstruction.agreement == "equal" or not summary.refused_nodes
    return named | summary.refused_nodes if is_proved else dict(summary.refused_nodes)


def _list_codes(refusal: Refusal) -> list[str]:
    counted = [code for code, count in refusal.counts.items() if count]
    return [refusal.bare] if refusal.bare else [*counted, *refusal.uncounted]


def _flag_verdicts(summary: AttemptSummarized, *words: str) -> npt.NDArray[np.bool_]:
    """Compute a flag per node: its verdict is one of ``words``."""
    # One more entry, because an empty table can't be indexed.
    flags: npt.NDArray[np.bool_] = np.array([*(word in words for word in summary.verdicts), False])[summary.verdict]
    return flags


def _write_code_line(summary: AttemptSummarized, code: str, rows: Ints) -> str:
    # Only names that fit are looked up: there may be thousands of nodes for each of a dozen codes.
    first = rows[:MAX_BYTES].tolist()
    return join_within_limit(f"{len(rows)} nodes {code}(", map(summary.nodes.__getitem__, first), len(rows))
