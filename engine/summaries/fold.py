"""Events of one attempt, folded into one summary.

Records may come in any order and more than once. The summary counts the device rows (``recount``); node records give
the outcome of each node, and their own counts where device rows are missing. A summary whose parts disagree or are
missing says so itself (``complete``, ``missing``) instead of looking right.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Final, NamedTuple, TypeVar

from engine.summaries.device_counts import count_by_model, count_by_verdict, count_rows
from engine.summaries.merge import count_fitting, merge_summaries, settle, with_bind
from engine.summaries.node_table import NodeTable, build_node_table
from schemas.events import (
    SCHEDULER,
    AttemptConcluded,
    AttemptEvent,
    AttemptSummarized,
    AttemptUnchanged,
    Balance,
    BindConcluded,
    DetailDropped,
    DevicesJudged,
    NodesJudged,
    PodRef,
    Report,
    Request,
)

__all__ = ["AttemptFold", "merge_summaries", "summarize", "with_bind"]

E = TypeVar("E")

# A record may claim position 2**62, and a list of that length would be made from it.
_UNKNOWN_CONTAINERS: Final = 1_024
"""Highest position that is believed of a container that no other record names."""


def summarize(events: Iterable[AttemptEvent]) -> AttemptSummarized:
    """Fold one attempt's events into its summary. Raises ``ValueError`` for no events, or for events of two
    attempts."""
    fold = AttemptFold()
    for event in events:
        fold.add(event)
    return fold.summarize()


class _Head(NamedTuple):
    """Fields that all records of the attempt share, from the record with the smallest id, so that the order of records
    does not matter."""

    id: str
    attempt_id: str
    pod: PodRef
    scheduler: str
    started_at: datetime
    cluster: str
    reader: str


@dataclass(slots=True)
class AttemptFold:
    """Records of one attempt so far."""

    _head: _Head | None = None
    _devices: dict[int, DevicesJudged] = field(default_factory=dict)
    _nodes: dict[int, NodesJudged] = field(default_factory=dict)
    _dropped: dict[str, DetailDropped] = field(default_factory=dict)
    _binds: dict[str, BindConcluded] = field(default_factory=dict)
    _concluded: AttemptConcluded | None = None
    _unchanged: AttemptUnchanged | None = None

    def add(self, event: AttemptEvent) -> None:
        """Add a record, in any order; a record that was added before changes nothing.

        Raises ``ValueError`` for a record of another attempt. Events that add nothing to a summary
        (``AttemptSummarized``, ``MessagesEmitted``) are ignored.
        """
        self._update_head(event)
        match event:
            case DevicesJudged():
                self._devices.setdefault(event.part, event)
            case NodesJudged():
                self._nodes.setdefault(event.part, event)
            case AttemptConcluded():
                # The first of two stays: at-least-once delivery repeats records, and repeated ones are equal.
                self._concluded = self._concluded or event
            case AttemptUnchanged():
                self._unchanged = self._unchanged or event
            case BindConcluded():
                self._binds.setdefault(event.id, event)
            case DetailDropped():
                self._dropped.setdefault(event.id, event)

    def _update_head(self, event: AttemptEvent) -> None:
        if self._head and self._head.attempt_id != event.attempt_id:
            raise ValueError(f"{event.id} does not belong to attempt {self._head.attempt_id}")
        head = _Head(
            event.id, event.attempt_id, event.pod, event.scheduler, event.started_at, event.cluster, event.reader
        )
        # The smallest id decides, not the first arrival: workers read partitions and replays in different orders and
        # must write equal summaries.
        if self._head is None or head.id < self._head.id:
            self._head = head

    @property
    def _ended_at(self) -> datetime | None:
        end = self._concluded or self._unchanged
        return end.ended_at if end else None

    def is_complete(self) -> bool:
        """Tell whether the conclusion and every record that it counts have arrived. Dropped device records count as
        arrived."""
        return self._concluded is not None and not self._count_missing_nodes() and not self._count_lost_devices()

    def _count_missing_nodes(self) -> int:
        return max(self._concluded.node_records - len(self._nodes), 0) if self._concluded else 0

    def _count_lost_devices(self) -> int:
        # The spool drops device rows first when it is full (decision 0004) and reports how many; waiting for them would
        # not end.
        given_up = sum(event.device_records for event in self._dropped.values())
        return max(self._concluded.device_records - len(self._devices) - given_up, 0) if self._concluded else 0

    def summarize(self) -> AttemptSummarized:
        """Summarize the records so far. Raises ``ValueError`` if there are none."""
        if self._head is None:
            raise ValueError("a summary of no events: an attempt begins with its first record")
        table = build_node_table(_sort_by_part(self._nodes), _sort_by_part(self._devices))
        summary = self._build_summary(self._head, table)
        # By time: a bind that failed and was tried again ends as its last try did.
        for bind in sorted(self._binds.values(), key=lambda event: (event.ended_at, event.id)):
            summary = with_bind(summary, bind)
        return summary

    def _build_summary(self, head: _Head, table: NodeTable) -> AttemptSummarized:
        end = self._concluded
        unbalanced = [*self._describe_absent_records(), *self._describe_imbalances(table), *table.disagreements]
        missing = "; ".join([*unbalanced, *self._describe_gaps()])
        chosen = end.chosen if end else None
        # By container, as HAMi's annotation lists the devices; an attempt that chose no node took none.
        picked = sorted(end.picked, key=lambda device: device.container) if end and chosen is not None else []
        return settle(
            AttemptSummarized.model_construct(
                cluster=head.cluster,
                attempt_id=head.attempt_id,
                pod=head.pod,
                scheduler=head.scheduler,
                reader="",
                started_at=head.started_at,
                version=0,
                part=0,
                parts=1,
                status="pending",
                complete=not missing,
                missing=missing,
                ended_at=self._ended_at,
                requests=self._list_requests(),
                constraints=end.constraints if end else None,
                node_policy=end.node_policy if end else "",
                device_policy=end.device_policy if end else "",
                offered_nodes=end.offered_nodes if end else len(table.nodes),
                fit_nodes=count_fitting(table.by_verdict),
                judged_devices=end.judged_devices if end else count_rows(self._devices.values()),
                chosen=chosen,
                picked_devices=[device.uuid for device in picked],
                picked=picked,
                balance=self._build_balance(table, "; ".join(unbalanced)),
                error=end.error if end else "",
                reports=[self._build_report(head)],
                may_duplicate=[],
                description=end.description if end else None,
                settings_digest=end.settings_digest if end else "",
                refused_nodes=end.refused_nodes if end else {},
                nominated=end.nominated if end else "",
                scheduler_message=end.scheduler_message if end else "",
                reconstruction=end.reconstruction if end else None,
                bind=None,
                # Fields with a default factory are passed: pydantic would look up the factory's signature.
                changes=[],
                **table.to_columns(),
            )
        )

    def _build_report(self, head: _Head) -> Report:
        provenance = self._concluded.provenance if self._concluded else None
        return Report.model_construct(
            source=head.reader or SCHEDULER,
            attempt_id=head.attempt_id,
            started_at=head.started_at,
            ended_at=self._ended_at,
            levels=provenance.levels if provenance else [],
            not_reported=provenance.not_reported if provenance else [],
        )

    def _build_balance(self, table: NodeTable, missing: str) -> Balance:
        end = self._concluded
        records = [device for device in self._devices.values() if device.container < _UNKNOWN_CONTAINERS]
        devices = count_by_verdict(records)
        return Balance.model_construct(
            judged_nodes=end.judged_nodes if end else len(table.nodes),
            judged_devices=end.judged_devices if end else sum(sum(device.values()) for device in devices),
            # A sum of what records claim may need more than 64 bits, which no reader has.
            dropped_devices=min(sum(event.judged_devices for event in self._dropped.values()), 2**63 - 1),
            nodes=table.by_verdict,
            devices=devices,
            models=count_by_model(records),
            missing=missing,
        )

    def _list_requests(self) -> list[Request]:
        """List the requests of the end; before the end arrives, those that the records name for each container."""
        requests = list(self._concluded.requests) if self._concluded else []
        names = max((node.containers for node in self._nodes.values()), key=len, default=[])
        recorded = (
            {device.container: device.request for device in self._devices.values()} if not self._concluded else {}
        )
        positions = [position for position in recorded if position < _UNKNOWN_CONTAINERS]
        for position in range(len(requests), max(len(names), *(index + 1 for index in positions), 0)):
            name = names[position] if position < len(names) else ""
            requests.append(recorded.get(position) or Request(container=name))
        return requests

    def _describe_gaps(self) -> Iterator[str]:
        """Describe what the source does not report."""
        if self._concluded and (left_out := self._concluded.requests_left_out):
            yield f"{left_out} containers of the pod are left out: it has more than an event holds"
        if self._concluded and (provenance := self._concluded.provenance) and provenance.not_reported:
            yield f"{self._concluded.reader} does not say: {', '.join(provenance.not_reported)}"

    def _describe_absent_records(self) -> Iterator[str]:
        """Describe the records of the attempt that have not arrived."""
        if not (end := self._concluded):
            if self._unchanged:
                yield f"it ended as attempt {self._unchanged.repeats}, which is not known"
            elif self._devices or self._nodes or self._dropped:
                arrived = f"{format_count(len(self._devices), 'device')} and {format_count(len(self._nodes), 'node')}"
                yield f"the end of the attempt is missing ({arrived} came)"
            else:
                yield "everything but the bind is missing"
            return
        if self._count_missing_nodes():
            yield describe_missing_parts("node", end.node_records, self._nodes)
        if self._count_lost_devices():
            yield describe_missing_parts("device", end.device_records, self._devices)

    def _describe_imbalances(self, table: NodeTable) -> Iterator[str]:
        """Describe where the records hold more or less than the end counts, once all of them have arrived."""
        if not (end := self._concluded) or not self.is_complete():
            return
        if len(table.nodes) != end.judged_nodes:
            yield f"the end counts {end.judged_nodes} nodes, the records hold {len(table.nodes)}"
        given_up = sum(event.judged_devices for event in self._dropped.values())
        rows = count_rows(self._devices.values())
        # A record that was reported as dropped may have reached Kafka nevertheless: extra rows are no imbalance then.
        if rows + given_up < end.judged_devices or (rows > end.judged_devices and not given_up):
            yield f"the end counts {end.judged_devices} device rows, the records hold {rows + given_up}"


def _sort_by_part(records: Mapping[int, E]) -> list[E]:
    return [records[part] for part in sorted(records)]


_NAMED_PARTS: Final = 10


def format_count(count: int, kind: str) -> str:
    return f"{count} {kind} record" + ("" if count == 1 else "s")


def describe_missing_parts(kind: str, records: int, arrived: Mapping[int, object]) -> str:
    """Describe the missing records, naming at most ``_NAMED_PARTS`` parts: a record may claim any number of them."""
    absent = list(islice((part for part in range(records) if part not in arrived), _NAMED_PARTS))
    parts = ", ".join(map(str, absent))
    more = ", …" if len(absent) == _NAMED_PARTS else ""
    return f"{records - len(arrived)} of {format_count(records, kind)} are missing (parts {parts}{more})"
