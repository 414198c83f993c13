"""Lines of HAMi's log for tests, and what the reader makes of them."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from engine.summaries.fold import summarize
from ingest.lines.blocks import Lines, Origin
from ingest.readers.hami.reader import HamiLog
from schemas.events import AttemptEvent, AttemptSummarized, DeviceRow, DevicesJudged, Event, NodeStateChanged
from tests.support.builders.node_states import build_lookup

WRITTEN = datetime(2026, 12, 31, tzinfo=UTC)


def a_line(text: str, *, seconds: float = 0.0, severity: str = "I") -> bytes:
    """``seconds``: seconds after 03:06:00."""
    minute, second = divmod(seconds, 60)
    return f"{severity}1121 03:{6 + int(minute):02d}:{second:09.6f}       1 score.go:1] {text}".encode()


def write_start(name: str = "trainer", namespace: str = "ml", seconds: float = 0.0) -> bytes:
    text = f'"Starting schedule filter process" pod="{name}" uuid="uid-{name}" namespace="{namespace}"'
    return a_line(text, seconds=seconds)


def write_request(*counts: int, pod: str = "ml/trainer", seconds: float = 0.01, memory: int = 20480) -> bytes:
    """Write a line with a container per count; each requests a little less memory than the one before."""
    requests = ",".join(_request(count, memory - index) if count else "{}" for index, count in enumerate(counts))
    return a_line(f'"Resource requirements collected" pod="{pod}" requests=[{requests}]', seconds=seconds)


def _request(count: int, memory: int) -> str:
    numbers = f'"Nums":{count},"Type":"NVIDIA","Memreq":{memory},"MemPercentagereq":101,"Coresreq":20'
    return f'{{"NVIDIA":{{{numbers}}}}}'


def write_name(index: int, name: str, pod: str = "ml/trainer", seconds: float = 0.01) -> bytes:
    return a_line(
        f'"Processing container resources" pod="{pod}" containerIndex={index} containerName="{name}"', seconds=seconds
    )


def write_unfit(node: str, reason: str, pod: str = "ml/trainer", seconds: float = 0.02) -> bytes:
    return a_line(f'"NodeUnfitPod" pod="{pod}" node="{node}" reason="{reason}"', seconds=seconds)


def write_fit(node: str, score: str, pod: str = "ml/trainer", seconds: float = 0.02) -> bytes:
    return a_line(f'"NodeFitPod" pod="{pod}" node="{node}" score={score}', seconds=seconds)


def an_event(reason: str, message: str, pod: str = "ml/trainer", seconds: float = 0.03) -> bytes:
    kind = "Normal" if reason.endswith("Succeed") else "Warning"
    head = f'"Event occurred" object="{pod}" fieldPath="" kind="Pod" apiVersion="v1" type="{kind}"'
    return a_line(f'{head} reason="{reason}" message="{message}"', seconds=seconds)


def write_failure(nodes: int, pod: str = "ml/trainer", seconds: float = 0.03) -> bytes:
    return an_event("FilteringFailed", f"no available node, {nodes} nodes do not meet", pod, seconds)


def build_lines(texts: Iterable[bytes]) -> Lines:
    return Lines(Origin("hami.log", WRITTEN), list(texts))


def read(*texts: bytes, reader: HamiLog | None = None) -> list[Event]:
    """Read all events of the log, to its end."""
    reader = reader or HamiLog()
    return [*reader.feed(build_lines(texts)), *reader.close()]


def list_states(events: Iterable[Event]) -> list[NodeStateChanged]:
    return [event for event in events if isinstance(event, NodeStateChanged)]


def list_devices(events: Sequence[Event]) -> list[DeviceRow]:
    """List the rows of all records, with what the states report of their devices."""
    state_of = build_lookup(list_states(events))
    return [row for event in events if isinstance(event, DevicesJudged) for row in event.iterate_devices(state_of)]


def summarize_attempts(events: Iterable[Event]) -> list[AttemptSummarized]:
    """Summarize the attempts in the order in which they started."""
    attempts: dict[str, list[AttemptEvent]] = {}
    for event in events:
        if isinstance(event, AttemptEvent):
            attempts.setdefault(event.attempt_id, []).append(event)
    return sorted(map(summarize, attempts.values()), key=lambda attempt: attempt.started_at)
