"""An attempt as schedulerlog's events: states of nodes, devices and nodes that were judged, and how it ended."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import numpy as np

from engine.hami.node_lock import is_contention
from ingest.readers.hami.attempt import UNKNOWN, Bind, HamiAttempt
from ingest.readers.hami.device_records import DeviceRecords, list_picked_devices
from ingest.readers.hami.devices import RegisteredDevices
from ingest.readers.hami.gaps import list_gaps
from ingest.readers.hami.states import derive_states
from ingest.readers.hami.tables import (
    add_rows_by_elimination,
    build_refusal_table,
    build_requests,
    collect_nodes,
    count_unnamed_refusals,
    find_complete_rows,
    group_rows,
    measure_json,
)
from ingest.readers.node_states import EmittedStates
from schemas.codec.chunking import divide_refusals
from schemas.codec.code_tables import cut_refusals
from schemas.events import (
    FITS,
    PICKED,
    REFUSED,
    UNREGISTERED,
    AttemptConcluded,
    BindConcluded,
    DevicesJudged,
    Event,
    LockHolder,
    NodesJudged,
    PodRef,
    Provenance,
)
from schemas.ids import derive_attempt_id

SOURCE: Final = "hami-log"

_NODE_BYTES: Final = 128
# Below 64 KiB by a margin for what each record holds once and for texts that JSON escapes.
_RECORD_BYTES: Final = 48 * 1024


def build_shared_fields(attempt: HamiAttempt, cluster: str, scheduler: str) -> dict[str, Any]:
    """Build the fields that all events of the attempt share. Without a UID the pod's name goes into the id."""
    return {
        "cluster": cluster,
        "attempt_id": derive_attempt_id(cluster, scheduler, attempt.uid or attempt.pod, attempt.started_at),
        "pod": PodRef(namespace=attempt.namespace, name=attempt.name, uid=attempt.uid),
        "scheduler": scheduler,
        "reader": SOURCE,
        "started_at": attempt.started_at,
    }


def build_bind(
    shared: dict[str, Any], bind: Bind, ended_at: datetime, holder: LockHolder | None = None
) -> BindConcluded:
    """Build the conclusion of a bind. ``holder``: of the node's lock, where the log names it."""
    ended_at = bind.ended_at or ended_at
    # As above: a clock that was set must not make a bind end before it began.
    started = min(bind.started_at, ended_at)
    if holder is None and is_contention(bind.error):
        holder = LockHolder()
    outcome = {"node": bind.node, "bound": not bind.error, "error": bind.error, "lock_holder": holder}
    return BindConcluded(**shared, **outcome, bind_started_at=started, ended_at=ended_at)


def build_events(
    attempt: HamiAttempt,
    registered: RegisteredDevices,
    by_node: Mapping[str, Sequence[str]],
    cluster: str,
    scheduler: str,
    emitted: EmittedStates,
) -> tuple[list[Event], Provenance]:
    """Build all events of the attempt, due states first; no conclusion if its end was not read.

    ``by_node``: the UUIDs of each registered node.
    """
    builder = _EventBuilder(attempt, registered, by_node, build_shared_fields(attempt, cluster, scheduler))
    return builder.build(emitted), builder.provenance


class _EventBuilder:
    def __init__(
        self,
        attempt: HamiAttempt,
        registered: RegisteredDevices,
        by_node: Mapping[str, Sequence[str]],
        shared: dict[str, Any],
    ) -> None:
        self._attempt, self._registered, self._shared = attempt, registered, shared
        self._lines = collect_nodes(attempt)
        # HAMi judges nodes in goroutines and so prints them in any order; sorted, two readings give the same records.
        self._names = sorted(self._lines)
        self._requests = build_requests(attempt)
        self._rows = add_rows_by_elimination(group_rows(attempt), self._lines, by_node)
        self._states = derive_states(attempt, self._rows, registered, by_node)
        complete_keys = find_complete_rows(self._lines, self._rows)
        self._devices = DeviceRecords(self._requests, self._lines, self._rows, complete_keys, self._states)
        gaps = list_gaps(attempt, self._requests, self._lines, self._rows, complete_keys)
        self.provenance = Provenance(levels=sorted(attempt.levels), not_reported=gaps)

    def build(self, emitted: EmittedStates) -> list[Event]:
        started_at = self._attempt.started_at
        states = [state for node in sorted(self._states) for state in self._states[node]]
        devices = list(self._devices.make(self._shared, _RECORD_BYTES))
        nodes = list(self._iterate_nodes())
        events: list[Event] = [
            state.to_event(self._shared["cluster"], self._shared["scheduler"], started_at)
            for state in states
            if emitted.mark_if_due(state, started_at)
        ]
        events += [*devices, *nodes]
        if self._attempt.ended_at:
            events.append(self._build_conclusion(self._attempt.ended_at, devices, len(nodes)))
        return events

    def _build_conclusion(self, ended_at: datetime, devices: Sequence[DevicesJudged], nodes: int) -> AttemptConcluded:
        attempt = self._attempt
        return AttemptConcluded(
            **self._shared,
            # klog's times may go back (a clock that was set).
            ended_at=max(ended_at, attempt.started_at),
            requests=self._requests,
            settings_digest=attempt.settings_digest,
            node_policy=attempt.node_policy,
            # A line can be missing, but a node that was judged was offered.
            offered_nodes=max(attempt.offered or 0, len(self._names)),
            judged_nodes=len(self._names),
            # Of the rows that were read, so that a fold that has them all finds nothing missing.
            judged_devices=sum(len(record.verdict) for record in devices),
            device_records=len(devices),
            node_records=nodes,
            chosen=attempt.chosen or None if not attempt.error else None,
            picked=list_picked_devices(self._requests, self._rows, attempt.chosen, self._registered),
            error=attempt.error,
            refused_nodes=count_unnamed_refusals(attempt, self._lines),
            scheduler_message=attempt.message,
            provenance=self.provenance,
        )

    def _iterate_nodes(self) -> Iterator[NodesJudged]:
        if not self._names:
            return
        verdicts = [PICKED, FITS, REFUSED, UNREGISTERED]
        lines = [self._lines[name] for name in self._names]
        chosen = self._attempt.chosen if not self._attempt.error else ""
        words = [
            PICKED if line.verdict == FITS and name == chosen else line.verdict
            for name, line in zip(self._names, lines, strict=True)
        ]
        refusals, refusal = build_refusal_table(lines)
        sizes = np.array([measure_json(name) + _NODE_BYTES for name in self._names], dtype=np.int64)
        # One record per part: an attempt on thousands of nodes exceeds the size that Kafka takes.
        for part, run in enumerate(divide_refusals(sizes, refusals, refusal, _RECORD_BYTES)):
            table, column = cut_refusals(refusals, refusal[run])
            yield NodesJudged(
                **self._shared,
                part=part,
                containers=[request.container for request in self._requests],
                verdicts=verdicts,
                refusals=table,
                nodes=self._names[run],
                verdict=np.array([verdicts.index(word) for word in words[run]], dtype=np.int64),
                score=np.array([line.score for line in lines[run]], dtype=np.float32),
                refused_by=np.array([self._resolve_container(line.container) for line in lines[run]], dtype=np.int64),
                refusal=column,
            )

    def _resolve_container(self, container: int) -> int:
        """Resolve the index of a container that the requests name, else ``UNKNOWN``."""
        return container if 0 <= container < len(self._requests) else UNKNOWN
