"""What a reader's events say of one attempt: without Kafka, pipeline or index."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from engine.summaries.fold import AttemptFold
from runtime.bounded_cache import BoundedCache
from schemas.answers.devices import DeviceLog
from schemas.codec.records import decode, encode
from schemas.events import AttemptEvent, DevicesJudged, FindingReported, NodeStateChanged

MAX_STATES: Final = 20_000
"""States of nodes that are remembered: as many as a reader remembers to have emitted."""

_State = tuple[str, int]
"""Node and revision."""


class StatesInLog:
    """The states of nodes that records of devices refer to."""

    def __init__(self) -> None:
        self._states: BoundedCache[_State, NodeStateChanged] = BoundedCache(MAX_STATES)

    def add(self, event: NodeStateChanged) -> None:
        self._states.put((event.node, event.revision), event)

    def of(self, devices: DevicesJudged) -> dict[_State, NodeStateChanged]:
        keys = zip(devices.nodes, devices.revision.tolist(), strict=True)
        return {key: state for key in keys if (state := self._states.get(key))}


@dataclass(slots=True)
class AttemptInLog:
    """What was read of one attempt."""

    fold: AttemptFold = field(default_factory=AttemptFold)
    devices: list[DevicesJudged] = field(default_factory=list)
    states: dict[_State, NodeStateChanged] = field(default_factory=dict)
    """Those that ``devices`` refer to."""
    findings: list[FindingReported] = field(default_factory=list)

    def add(self, event: AttemptEvent, known: StatesInLog) -> None:
        # Through a record and back, so that the answer is that of a consumer.
        read = decode((record := encode(event)).value, record.headers)
        if isinstance(read, AttemptEvent):
            self.fold.add(read)
        if isinstance(read, DevicesJudged):
            self.devices.append(read)
            self.states |= known.of(read)
        if isinstance(read, FindingReported):
            self.findings.append(read)

    def device_rows(self) -> Iterator[DeviceLog]:
        """As ``?detail=full&node=`` of the API, for all nodes."""
        for record in self.devices:
            for row in record.each_device(lambda node, revision: self.states.get((node, revision))):
                yield DeviceLog(container=record.request.container, **row._asdict())
