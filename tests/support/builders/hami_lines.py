"""Lines of HAMi's log for tests, and what the reader makes of them."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from engine.summaries.fold import summarize
from ingest.lines.blocks import Lines, Origin
from ingest.readers.hami.reader import HamiLog
from schemas.events import AttemptEvent, AttemptSummarized, DeviceRow, DevicesJudged, Event, NodeStateChanged
from tests.support.builders.node_states import lookup

WRITTEN = datetime(2026, 12, 31, tzinfo=UTC)


def a_line(text: str, *, at: float = 0.0, severity: str = "I") -> bytes:
    """``at``: seconds after 03:06:00."""
    minute, second = divmod(at, 60)
    return f"{severity}1121 03:{6 + int(minute):02d}:{second:09.6f}       1 score.go:1] {text}".encode()


def started(name: str = "trainer", namespace: str = "ml", at: float = 0.0) -> bytes:
    text = f'"Starting schedule filter process" pod="{name}" uuid="uid-{name}" namespace="{namespace}"'
    return a_line(text, at=at)


def requested(*counts: int, pod: str = "ml/trainer", at: float = 0.01, memory: int = 20480) -> bytes:
    """A container per count; each requests a little less memory than the one before."""
    requests = ",".join(_request(count, memory - index) if count else "{}" for index, count in enumerate(counts))
    return a_line(f'"Resource requirements collected" pod="{pod}" requests=[{requests}]', at=at)


def _request(count: int, memory: int) -> str:
    numbers = f'"Nums":{count},"Type":"NVIDIA","Memreq":{memory},"MemPercentagereq":101,"Coresreq":20'
    return f'{{"NVIDIA":{{{numbers}}}}}'


def named(index: int, name: str, pod: str = "ml/trainer", at: float = 0.01) -> bytes:
    return a_line(f'"Processing container resources" pod="{pod}" containerIndex={index} containerName="{name}"', at=at)


def unfit(node: str, reason: str, pod: str = "ml/trainer", at: float = 0.02) -> bytes:
    return a_line(f'"NodeUnfitPod" pod="{pod}" node="{node}" reason="{reason}"', at=at)


def fit(node: str, score: str, pod: str = "ml/trainer", at: float = 0.02) -> bytes:
    return a_line(f'"NodeFitPod" pod="{pod}" node="{node}" score={score}', at=at)


def an_event(reason: str, message: str, pod: str = "ml/trainer", at: float = 0.03) -> bytes:
    kind = "Normal" if reason.endswith("Succeed") else "Warning"
    head = f'"Event occurred" object="{pod}" fieldPath="" kind="Pod" apiVersion="v1" type="{kind}"'
    return a_line(f'{head} reason="{reason}" message="{message}"', at=at)


def failed(nodes: int, pod: str = "ml/trainer", at: float = 0.03) -> bytes:
    return an_event("FilteringFailed", f"no available node, {nodes} nodes do not meet", pod, at)


def lines(texts: Iterable[bytes]) -> Lines:
    return Lines(Origin("hami.log", WRITTEN), list(texts))


def read(*texts: bytes, reader: HamiLog | None = None) -> list[Event]:
    """All events of the log, to its end."""
    reader = reader or HamiLog()
    return [*reader.feed(lines(texts)), *reader.close()]


def states(events: Iterable[Event]) -> list[NodeStateChanged]:
    return [event for event in events if isinstance(event, NodeStateChanged)]


def devices(events: Sequence[Event]) -> list[DeviceRow]:
    """The rows of all records, with what the states report of their devices."""
    state_of = lookup(states(events))
    return [row for event in events if isinstance(event, DevicesJudged) for row in event.each_device(state_of)]


def summaries(events: Iterable[Event]) -> list[AttemptSummarized]:
    """In the order in which the attempts started."""
    attempts: dict[str, list[AttemptEvent]] = {}
    for event in events:
        if isinstance(event, AttemptEvent):
            attempts.setdefault(event.attempt_id, []).append(event)
    return sorted(map(summarize, attempts.values()), key=lambda attempt: attempt.started_at)
