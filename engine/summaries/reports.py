"""Reports of several sources about one attempt, put together: each part of it has the value of the best that says it.

A part is a group of fields whose values belong together; which report gives it stands in ``Report.gives``. Each part
takes the greatest value in an order that depends on nothing but the report itself, so neither the order of reports nor
their repetition matters. What names the attempt (id and start) is that of the report that was published first.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from engine.summaries.merge import later, merged, settled
from schemas.events import FILTER_END, OFFERED_NODES, SCHEDULER, AttemptSummarized, BindOutcome, Report, Request

KUBE_EVENTS: Final = "kube-events"
_SOURCES: Final = {SCHEDULER: 3, "hami-log": 2, "kai-log": 2, KUBE_EVENTS: 1}
"""The greatest is the best; any other source has 0."""

FILTER: Final = "filter"
BIND: Final = "bind"

Order = tuple[Any, ...]


class AttemptPart(NamedTuple):
    name: str
    fields: tuple[str, ...]
    is_given: Callable[[AttemptSummarized, Report], bool]
    """Does the summary of this report alone say it?"""
    order: Callable[[AttemptSummarized, Report], Order]
    """The report with the greatest order provides the part. A function of the summary and its report."""


def _quality(_summary: AttemptSummarized, report: Report) -> Order:
    # The id where two sources are equally good: any rule will do that does not depend on who comes first.
    return _SOURCES.get(report.source, 0), report.attempt_id


def _by_cluster(summary: AttemptSummarized, report: Report) -> Order:
    """What became of the pod afterwards, the cluster itself knows best."""
    return report.source == KUBE_EVENTS, *_quality(summary, report)


def _filter_order(summary: AttemptSummarized, report: Report) -> Order:
    has_end = summary.ended_at is not None and FILTER_END not in report.not_reported
    return has_end, summary.complete, *_quality(summary, report)


def _bind_order(summary: AttemptSummarized, report: Report) -> Order:
    # A pod that is bound stays so. A refusal that only follows from the attempt's end (``_refused_by_cluster``) is
    # weaker than the result of a bind.
    is_bound = summary.bind is not None and summary.bind.bound
    return is_bound, report.bind_ended_at is not None, *_by_cluster(summary, report)


def _description_order(summary: AttemptSummarized, report: Report) -> Order:
    owners = summary.description.owners if summary.description else []
    return len(owners), *_by_cluster(summary, report)


def _says_requests(summary: AttemptSummarized, report: Report) -> bool:
    says = any(request.count or request.container for request in summary.requests)
    return says and "requests" not in report.not_reported


def _says_offered(summary: AttemptSummarized, report: Report) -> bool:
    return summary.ended_at is not None and not {OFFERED_NODES, FILTER_END} & set(report.not_reported)


def _says(*fields: str) -> Callable[[AttemptSummarized, Report], bool]:
    return lambda summary, _report: any(getattr(summary, name) for name in fields)


_FILTER_FIELDS: Final = (
    "ended_at", "fit_nodes", "judged_devices", "chosen", "balance", "error", "refused_nodes", "complete", "missing",
    "nodes", "verdicts", "verdict", "score", "refused_by", "refusals", "refusal", "score_terms",
)  # fmt: skip
PARTS: Final = (
    AttemptPart(FILTER, _FILTER_FIELDS, _says("ended_at", "nodes", "judged_devices"), _filter_order),
    AttemptPart("requests", ("requests", "constraints"), _says_requests, _quality),
    AttemptPart("offered nodes", ("offered_nodes",), _says_offered, _quality),
    AttemptPart("policies", ("node_policy", "device_policy"), _says("node_policy", "device_policy"), _quality),
    AttemptPart("picked devices", ("picked_devices", "picked"), _says("picked_devices"), _quality),
    AttemptPart("nominated node", ("nominated",), _says("nominated"), _by_cluster),
    AttemptPart("scheduler message", ("scheduler_message",), _says("scheduler_message"), _by_cluster),
    AttemptPart("description", ("description",), _says("description"), _description_order),
    AttemptPart("settings", ("settings_digest",), _says("settings_digest"), _quality),
    AttemptPart(BIND, ("bind",), _says("bind"), _bind_order),
)


def giver(summary: AttemptSummarized, part: AttemptPart) -> Report | None:
    """The report that gives the part; None where no report says it."""
    if len(summary.reports) == 1:
        (report,) = summary.reports
        return report if part.is_given(summary, report) else None
    return next((report for report in summary.reports if part.name in report.gives), None)


def filter_giver(summary: AttemptSummarized) -> Report | None:
    """The report whose verdicts the summary has."""
    return giver(summary, PARTS[0])


def combined(published: AttemptSummarized, other: AttemptSummarized) -> AttemptSummarized:
    """The attempt as it was published, with all that ``other`` says: a further report of it, or more of one it has.

    But for what names the attempt, the order does not matter, nor does it matter how often a report comes.
    """
    if len(published.reports) == len(other.reports) == 1 and _ids(published) == _ids(other):
        return merged(published, other)
    both = _Both(published, other)
    sides = {part.name: both.winner(part) for part in PARTS}
    givers = {name: side[1] for name, side in sides.items() if side}
    fields = {
        name: getattr(side[0], name)
        for part in PARTS
        if (side := sides[part.name])
        for name in part.fields
    }  # fmt: skip
    base = sides[FILTER]
    whole = base[0] if base else published
    if (refusal := both.refusal()) and not fields.get("bind") and (chosen := fields.get("chosen")):
        fields["bind"] = BindOutcome(
            node=str(chosen), bound=False, error=refusal[0].error, ended_at=refusal[0].ended_at or published.started_at
        )
        givers[BIND] = refusal[1]
    fields["bind"] = _with_holder(fields.get("bind"), published.bind, other.bind)
    if not (base and whole.ended_at) and (bind := fields.get("bind")):
        # As in ``merge``: where the filter's end is unknown, the bind is the only evidence of its choice.
        fields["chosen"] = bind.node
    fields["requests"] = _at_least(fields.get("requests", whole.requests), whole)
    own = {name: getattr(published, name) for name in ("cluster", "attempt_id", "scheduler", "started_at")}
    pod = max(published.pod, other.pod, key=lambda ref: ref.uid)
    return settled(
        whole.model_copy(
            update={
                **fields,
                **own,
                "pod": pod,
                "reports": _named(both.reports, givers),
                "may_duplicate": sorted({*published.may_duplicate, *other.may_duplicate} - {published.attempt_id}),
            }
        )
    )


def _with_holder(bind: BindOutcome | None, *known: BindOutcome | None) -> BindOutcome | None:
    """A bind that failed, with the holder of the lock: only the scheduler says it."""
    if bind is None or bind.bound or bind.lock_holder:
        return bind
    holder = next((side.lock_holder for side in known if side and side.lock_holder and side.node == bind.node), None)
    return bind.model_copy(update={"lock_holder": holder}) if holder else bind


_Side = tuple[AttemptSummarized, Report]


class _Both:
    """Two summaries of one attempt, and the reports that they have together."""

    def __init__(self, one: AttemptSummarized, other: AttemptSummarized) -> None:
        self.one, self.other = one, other
        known = {report.attempt_id: report for report in one.reports}
        for report in other.reports:
            before = known.get(report.attempt_id)
            known[report.attempt_id] = _joined(before, report) if before else report
        self.reports = list(known.values())
        self._by_id = known

    def winner(self, part: AttemptPart) -> _Side | None:
        """The summary whose value of the part holds, and the report that gives it."""
        givers = [
            (side, self._by_id[report.attempt_id])
            for side in (self.one, self.other)
            if (report := giver(side, part)) is not None
        ]
        if len(givers) == 2 and givers[0][1] is givers[1][1]:
            return self._of_one_report(part), givers[0][1]
        return max(givers, key=lambda side: part.order(*side), default=None)

    def _of_one_report(self, part: AttemptPart) -> AttemptSummarized:
        if part.name == BIND:
            bind = later(self.one.bind, self.other.bind)
            return self.one if bind == self.one.bind else self.other
        return merged(self.one, self.other)

    def refusal(self) -> _Side | None:
        """The side in which the cluster says that the attempt failed, for another reason than that no node fits."""
        for side in (self.one, self.other):
            report = filter_giver(side)
            if side.error and side.chosen is None and not side.nodes and report and report.source == KUBE_EVENTS:
                return side, self._by_id[report.attempt_id]
        return None


def _joined(one: Report, other: Report) -> Report:
    """The same report, known by two of its summaries."""
    fuller = one if one.ended_at else other
    times = [report.bind_ended_at for report in (one, other) if report.bind_ended_at]
    return fuller.model_copy(update={"bind_ended_at": max(times, default=None)})


def _named(reports: Sequence[Report], givers: Mapping[str, Report]) -> list[Report]:
    """The best source first, each with the parts that it gives."""
    in_order = sorted(reports, key=lambda report: (-_SOURCES.get(report.source, 0), report.attempt_id))
    return [
        report.model_copy(update={"gives": [name for name, by in givers.items() if by.attempt_id == report.attempt_id]})
        for report in in_order
    ]


def _at_least(requests: Sequence[Request], whole: AttemptSummarized) -> list[Request]:
    """As many as the nodes' verdicts refer to: another source may name fewer containers."""
    needed = int(whole.refused_by.max(initial=-1)) + 1
    return [*requests, *(Request(container="") for _ in range(needed - len(requests)))]


def _ids(summary: AttemptSummarized) -> list[str]:
    return [report.attempt_id for report in summary.reports]
