"""The events of one attempt, folded into one summary.

Records may come in any order and more than once. What counts are the device rows (``recount``); node records say what
became of each node and keep their own counts for where the rows are missing. A summary whose parts disagree or are
missing says so itself (``complete``, ``missing``) instead of looking right.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple, TypeVar

from engine.summaries.merge import fitting, merged, settled, with_bind
from engine.summaries.missing_records import absent_records, count_of
from engine.summaries.node_table import NodeTable, node_table
from engine.summaries.tally import by_model, by_verdict, judged
from schemas.events import (
    SCHEDULER,
    AttemptConcluded,
    AttemptEvent,
    AttemptSummarized,
    Balance,
    BindConcluded,
    DetailDropped,
    DevicesJudged,
    NodesJudged,
    PodRef,
    Report,
    Request,
)

__all__ = ["AttemptFold", "merged", "summarize", "with_bind"]

E = TypeVar("E")

# A record may claim position 2**62, and a list of that length would be made from it.
_UNKNOWN_CONTAINERS: Final = 1_024
"""Positions up to here are believed of a container that no other record names."""


def summarize(events: Iterable[AttemptEvent]) -> AttemptSummarized:
    """The summary of one attempt's events. Raises ``ValueError`` for none, or for those of two attempts."""
    fold = AttemptFold()
    for event in events:
        fold.add(event)
    return fold.summarize()


class _Head(NamedTuple):
    """The fields that all records of the attempt share. Those of the record with the smallest id are used, so that the
    order of records does not matter."""

    id: str
    attempt_id: str
    pod: PodRef
    scheduler: str
    started_at: datetime
    cluster: str
    reader: str


@dataclass(slots=True)
class AttemptFold:
    """What is known of one attempt so far."""

    _head: _Head | None = None
    _devices: dict[int, DevicesJudged] = field(default_factory=dict)
    _nodes: dict[int, NodesJudged] = field(default_factory=dict)
    _dropped: dict[str, DetailDropped] = field(default_factory=dict)
    _binds: dict[str, BindConcluded] = field(default_factory=dict)
    _concluded: AttemptConcluded | None = None

    def add(self, event: AttemptEvent) -> None:
        """Add a record, in any order; a record that was added before changes nothing.

        Raises ``ValueError`` for a record of another attempt. Events that add nothing to a summary
        (``AttemptSummarized``, ``MessageEmitted``) are ignored.
        """
        self._name(event)
        match event:
            case DevicesJudged():
                self._devices.setdefault(event.part, event)
            case NodesJudged():
                self._nodes.setdefault(event.part, event)
            case AttemptConcluded():
                # The first of two is kept: at-least-once delivery repeats records, and repeated ones are equal.
                self._concluded = self._concluded or event
            case BindConcluded():
                self._binds.setdefault(event.id, event)
            case DetailDropped():
                self._dropped.setdefault(event.id, event)

    def _name(self, event: AttemptEvent) -> None:
        if self._head and self._head.attempt_id != event.attempt_id:
            raise ValueError(f"{event.id} does not belong to attempt {self._head.attempt_id}")
        head = _Head(
            event.id, event.attempt_id, event.pod, event.scheduler, event.started_at, event.cluster, event.reader
        )
        # Not the first that came: workers read partitions and replays in different orders and must write equal
        # summaries.
        if self._head is None or head.id < self._head.id:
            self._head = head

    def is_complete(self) -> bool:
        """Have the conclusion and every record that it counts arrived? Dropped device records count as arrived."""
        return self._concluded is not None and not self._missing_nodes() and not self._lost_devices()

    def _missing_nodes(self) -> int:
        return max(self._concluded.node_records - len(self._nodes), 0) if self._concluded else 0

    def _lost_devices(self) -> int:
        # The spool drops device rows first when it is full (decision 0004) and reports how many; waiting for them would
        # not end.
        given_up = sum(event.device_records for event in self._dropped.values())
        return max(self._concluded.device_records - len(self._devices) - given_up, 0) if self._concluded else 0

    def summarize(self) -> AttemptSummarized:
        """The summary of the records so far. Raises ``ValueError`` when there are none."""
        if self._head is None:
            raise ValueError("a summary of no events: an attempt begins with its first record")
        table = node_table(_in_order(self._nodes), _in_order(self._devices))
        summary = self._summary_of(self._head, table)
        # By time: a bind that failed and was tried again ends as its last try did.
        for bind in sorted(self._binds.values(), key=lambda event: (event.ended_at, event.id)):
            summary = with_bind(summary, bind)
        return summary

    def _summary_of(self, head: _Head, table: NodeTable) -> AttemptSummarized:
        end = self._concluded
        unbalanced = [*self._absent_records(), *self._imbalances(table), *table.disagreements]
        missing = "; ".join([*unbalanced, *self._left_open()])
        chosen = end.chosen if end else None
        # By container, as HAMi's annotation lists the devices; an attempt that chose no node took none.
        picked = sorted(end.picked, key=lambda device: device.container) if end and chosen is not None else []
        return settled(
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
                ended_at=end.ended_at if end else None,
                requests=self._requests(),
                constraints=end.constraints if end else None,
                node_policy=end.node_policy if end else "",
                device_policy=end.device_policy if end else "",
                offered_nodes=end.offered_nodes if end else len(table.nodes),
                fit_nodes=fitting(table.by_verdict),
                judged_devices=end.judged_devices if end else judged(self._devices.values()),
                chosen=chosen,
                picked_devices=[device.uuid for device in picked],
                picked=picked,
                balance=self._balance(table, "; ".join(unbalanced)),
                error=end.error if end else "",
                reports=[self._report(head)],
                may_duplicate=[],
                description=end.description if end else None,
                settings_digest=end.settings_digest if end else "",
                refused_nodes=end.refused_nodes if end else {},
                nominated=end.nominated if end else "",
                scheduler_message=end.scheduler_message if end else "",
                bind=None,
                # Every field that has a default factory: pydantic would look up the factory's signature.
                changes=[],
                **table.columns(),
            )
        )

    def _report(self, head: _Head) -> Report:
        found = self._concluded.provenance if self._concluded else None
        return Report.model_construct(
            source=head.reader or SCHEDULER,
            attempt_id=head.attempt_id,
            started_at=head.started_at,
            ended_at=self._concluded.ended_at if self._concluded else None,
            levels=found.levels if found else [],
            not_reported=found.not_reported if found else [],
        )

    def _balance(self, table: NodeTable, missing: str) -> Balance:
        end = self._concluded
        records = [device for device in self._devices.values() if device.container < _UNKNOWN_CONTAINERS]
        devices = by_verdict(records)
        return Balance.model_construct(
            judged_nodes=end.judged_nodes if end else len(table.nodes),
            judged_devices=end.judged_devices if end else sum(sum(device.values()) for device in devices),
            # A sum of what records claim may need more than 64 bits, which no reader has.
            dropped_devices=min(sum(event.judged_devices for event in self._dropped.values()), 2**63 - 1),
            nodes=table.by_verdict,
            devices=devices,
            models=by_model(records),
            missing=missing,
        )

    def _requests(self) -> list[Request]:
        """As the end says them; before it is known, what the records say of each container."""
        requests = list(self._concluded.requests) if self._concluded else []
        names = max((node.containers for node in self._nodes.values()), key=len, default=[])
        asked = {device.container: device.request for device in self._devices.values()} if not self._concluded else {}
        known = [position for position in asked if position < _UNKNOWN_CONTAINERS]
        for position in range(len(requests), max(len(names), *(at + 1 for at in known), 0)):
            name = names[position] if position < len(names) else ""
            requests.append(asked.get(position) or Request(container=name))
        return requests

    def _left_open(self) -> Iterator[str]:
        """In words, what the source does not say."""
        if self._concluded and (left_out := self._concluded.requests_left_out):
            yield f"{left_out} containers of the pod are left out: it has more than an event holds"
        if self._concluded and (found := self._concluded.provenance) and found.not_reported:
            yield f"{self._concluded.reader} does not say: {', '.join(found.not_reported)}"

    def _absent_records(self) -> Iterator[str]:
        """In words: the records of the attempt that have not arrived."""
        if not (end := self._concluded):
            if self._devices or self._nodes or self._dropped:
                came = f"{count_of(len(self._devices), 'device')} and {count_of(len(self._nodes), 'node')}"
                yield f"the end of the attempt is missing ({came} came)"
            else:
                yield "everything but the bind is missing"
            return
        if self._missing_nodes():
            yield absent_records("node", end.node_records, self._nodes)
        if self._lost_devices():
            yield absent_records("device", end.device_records, self._devices)

    def _imbalances(self, table: NodeTable) -> Iterator[str]:
        """Do the records hold as much as the end counts? Checked only when all of them have arrived."""
        if not (end := self._concluded) or not self.is_complete():
            return
        if len(table.nodes) != end.judged_nodes:
            yield f"the end counts {end.judged_nodes} nodes, the records hold {len(table.nodes)}"
        given_up = sum(event.judged_devices for event in self._dropped.values())
        rows = judged(self._devices.values())
        # A record that was reported as dropped may have reached Kafka nevertheless: then more rows are no imbalance.
        if rows + given_up < end.judged_devices or (rows > end.judged_devices and not given_up):
            yield f"the end counts {end.judged_devices} device rows, the records hold {rows + given_up}"


def _in_order(records: Mapping[int, E]) -> list[E]:
    return [records[part] for part in sorted(records)]
