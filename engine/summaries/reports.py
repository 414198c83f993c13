"""Reports of several sources about one attempt, combined: each part has the value of the best source that reports it.

A part is a group of fields whose values belong together; ``Report.gives`` names the parts of a report. Each part takes
the greatest value in an order that depends only on the report itself, so neither the order of reports nor their
repetition matters. Id and start of the attempt are those of the report that was published first.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from engine.summaries.merge import choose_later_bind, merge_summaries, settle
from schemas.events import FILTER_END, OFFERED_NODES, SCHEDULER, AttemptSummarized, BindOutcome, Report, Request

KUBE_EVENTS: Final = "kube-events"
_SOURCES: Final = {SCHEDULER: 3, "hami-log": 2, "kai-log": 2, KUBE_EVENTS: 1}
"""Rank of each source, the best has the greatest; any other source has 0."""

FILTER: Final = "filter"
BIND: Final = "bind"

Order = tuple[Any, ...]


class AttemptPart(NamedTuple):
    name: str
    fields: tuple[str, ...]
    is_given: Callable[[AttemptSummarized, Report], bool]
    """Predicate: the summary of this report by itself has the part."""
    order: Callable[[AttemptSummarized, Report], Order]
    """Sort key of a summary and its report: the report with the greatest key provides the part."""


def _rank_source(_summary: AttemptSummarized, report: Report) -> Order:
    # The id decides between equally good sources: any rule will do that does not depend on the order of arrival.
    return _SOURCES.get(report.source, 0), report.attempt_id


def _rank_cluster_first(summary: AttemptSummarized, report: Report) -> Order:
    """Rank the cluster's own reports first: it knows the pod's final state."""
    return report.source == KUBE_EVENTS, *_rank_source(summary, report)


def _rank_filter(summary: AttemptSummarized, report: Report) -> Order:
    has_end = summary.ended_at is not None and FILTER_END not in report.not_reported
    # The scheduler's own verdicts are the truth where another source has them.
    is_complete = summary.complete and summary.reconstruction is None
    return has_end, is_complete, *_rank_source(summary, report)


def _rank_bind(summary: AttemptSummarized, report: Report) -> Order:
    # A pod that is bound stays so. A refusal that only follows from the attempt's end (``_refused_by_cluster``) is
    # weaker than the result of a bind.
    is_bound = summary.bind is not None and summary.bind.bound
    return is_bound, report.bind_ended_at is not None, *_rank_cluster_first(summary, report)


def _rank_description(summary: AttemptSummarized, report: Report) -> Order:
    owners = summary.description.owners if summary.description else []
    return len(owners), *_rank_cluster_first(summary, report)


def _says_requests(summary: AttemptSummarized, report: Report) -> bool:
    says = any(request.count or request.container for request in summary.requests)
    return says and "requests" not in report.not_reported


def _says_offered(summary: AttemptSummarized, report: Report) -> bool:
    return summary.ended_at is not None and not {OFFERED_NODES, FILTER_END} & set(report.not_reported)


def _check_fields(*fields: str) -> Callable[[AttemptSummarized, Report], bool]:
    return lambda summary, _report: any(getattr(summary, name) for name in fields)


_FILTER_FIELDS: Final = (
    "ended_at", "fit_nodes", "judged_devices", "chosen", "balance", "error", "refused_nodes", "complete", "missing",
    "nodes", "verdicts", "verdict", "score", "refused_by", "refusals", "refusal", "score_terms", "reconstruction",
)  # fmt: skip
PARTS: Final = (
    AttemptPart(FILTER, _FILTER_FIELDS, _check_fields("ended_at", "nodes", "judged_devices"), _rank_filter),
    AttemptPart("requests", ("requests", "constraints"), _says_requests, _rank_source),
    AttemptPart("offered nodes", ("offered_nodes",), _says_offered, _rank_source),
    AttemptPart(
        "policies", ("node_policy", "device_policy"), _check_fields("node_policy", "device_policy"), _rank_source
    ),
    AttemptPart("picked devices", ("picked_devices", "picked"), _check_fields("picked_devices"), _rank_source),
    AttemptPart("nominated node", ("nominated",), _check_fields("nominated"), _rank_cluster_first),
    AttemptPart("scheduler message", ("scheduler_message",), _check_fields("scheduler_message"), _rank_cluster_first),
    AttemptPart("description", ("description",), _check_fields("description"), _rank_description),
    AttemptPart("settings", ("settings_digest",), _check_fields("settings_digest"), _rank_source),
    AttemptPart(BIND, ("bind",), _check_fields("bind"), _rank_bind),
)


def find_giver(summary: AttemptSummarized, part: AttemptPart) -> Report | None:
    """Find the report that gives the part; None if no report has it."""
    if len(summary.reports) == 1:
        (report,) = summary.reports
        return report if part.is_given(summary, report) else None
    return next((report for report in summary.reports if part.name in report.gives), None)


def find_filter_giver(summary: AttemptSummarized) -> Report | None:
    """Find the report whose verdicts the summary has."""
    return find_giver(summary, PARTS[0])


def combine(published: AttemptSummarized, other: AttemptSummarized) -> AttemptSummarized:
    """Combine the published attempt with ``other``: a further report of it, or a fuller version of one of its reports.

    Except for the id and start of the attempt, neither the order nor the repetition of reports matters.
    """
    if len(published.reports) == len(other.reports) == 1 and _list_ids(published) == _list_ids(other):
        return merge_summaries(published, other)
    both = _Both(published, other)
    sides = {part.name: both.find_winner(part) for part in PARTS}
    givers = {name: side[1] for name, side in sides.items() if side}
    fields = {
        name: getattr(side[0], name)
        for part in PARTS
        if (side := sides[part.name])
        for name in part.fields
    }  # fmt: skip
    base = sides[FILTER]
    full_summary = base[0] if base else published
    if (refusal := both.find_refusal()) and not fields.get("bind") and (chosen := fields.get("chosen")):
        fields["bind"] = BindOutcome(
            node=str(chosen), bound=False, error=refusal[0].error, ended_at=refusal[0].ended_at or published.started_at
        )
        givers[BIND] = refusal[1]
    fields["bind"] = _with_holder(fields.get("bind"), published.bind, other.bind)
    if not (base and full_summary.ended_at) and (bind := fields.get("bind")):
        # As in ``merge``: if the filter's end is unknown, the bind is the only evidence of its choice.
        fields["chosen"] = bind.node
    fields["requests"] = _pad_requests(fields.get("requests", full_summary.requests), full_summary)
    identity = {name: getattr(published, name) for name in ("cluster", "attempt_id", "scheduler", "started_at")}
    pod = max(published.pod, other.pod, key=lambda ref: ref.uid)
    return settle(
        full_summary.model_copy(
            update={
                **fields,
                **identity,
                "pod": pod,
                "reports": _assign_parts(both.reports, givers),
                "may_duplicate": sorted({*published.may_duplicate, *other.may_duplicate} - {published.attempt_id}),
            }
        )
    )


def _with_holder(bind: BindOutcome | None, *sides: BindOutcome | None) -> BindOutcome | None:
    """Name the holder of the lock in a failed bind: events know that the lock was held, and not by whom."""
    if bind is None or bind.bound or (bind.lock_holder and bind.lock_holder.pod):
        return bind
    holders = [side.lock_holder for side in sides if side and side.lock_holder and side.node == bind.node]
    holder = max(holders, key=lambda holder: bool(holder.pod), default=None)
    return bind.model_copy(update={"lock_holder": holder}) if holder else bind


_Side = tuple[AttemptSummarized, Report]


class _Both:
    """Two summaries of one attempt, and the reports of both."""

    def __init__(self, published: AttemptSummarized, other: AttemptSummarized) -> None:
        self.published, self.other = published, other
        reports = {report.attempt_id: report for report in published.reports}
        for report in other.reports:
            before = reports.get(report.attempt_id)
            reports[report.attempt_id] = _join_reports(before, report) if before else report
        self.reports = list(reports.values())
        self._by_id = reports

    def find_winner(self, part: AttemptPart) -> _Side | None:
        """Find the summary whose value of the part holds, and the report that gives it."""
        givers = [
            (side, self._by_id[report.attempt_id])
            for side in (self.published, self.other)
            if (report := find_giver(side, part)) is not None
        ]
        if len(givers) == 2 and givers[0][1] is givers[1][1]:
            return self._merge_report(part), givers[0][1]
        return max(givers, key=lambda side: part.order(*side), default=None)

    def _merge_report(self, part: AttemptPart) -> AttemptSummarized:
        if part.name == BIND:
            bind = choose_later_bind(self.published.bind, self.other.bind)
            return self.published if bind == self.published.bind else self.other
        return merge_summaries(self.published, self.other)

    def find_refusal(self) -> _Side | None:
        """Find the side in which the cluster reports that the attempt failed, for another reason than that no node
        fits."""
        for side in (self.published, self.other):
            report = find_filter_giver(side)
            if side.error and side.chosen is None and not side.nodes and report and report.source == KUBE_EVENTS:
                return side, self._by_id[report.attempt_id]
        return None


def _join_reports(report_before: Report, other: Report) -> Report:
    """Join two versions of one report."""
    fuller = report_before if report_before.ended_at else other
    times = [report.bind_ended_at for report in (report_before, other) if report.bind_ended_at]
    return fuller.model_copy(update={"bind_ended_at": max(times, default=None)})


def _assign_parts(reports: Sequence[Report], givers: Mapping[str, Report]) -> list[Report]:
    """Sort the best source first, and add to each report the parts that it gives."""
    in_order = sorted(reports, key=lambda report: (-_SOURCES.get(report.source, 0), report.attempt_id))
    return [
        report.model_copy(
            update={"gives": [name for name, giver in givers.items() if giver.attempt_id == report.attempt_id]}
        )
        for report in in_order
    ]


def _pad_requests(requests: Sequence[Request], summary: AttemptSummarized) -> list[Request]:
    """Pad the requests to the number that the nodes' verdicts refer to: another source may name fewer containers."""
    needed = int(summary.refused_by.max(initial=-1)) + 1
    return [*requests, *(Request(container="") for _ in range(needed - len(requests)))]


def _list_ids(summary: AttemptSummarized) -> list[str]:
    return [report.attempt_id for report in summary.reports]
