"""Time that a pod spent in each layer, and the layer that holds it now."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from engine.diagnosis.outcome import FoundObstacle, TreeStep
from engine.diagnosis.timeline import Moment
from schemas.answers.diagnosis import Layer, LayerWait, TimelineEvent
from schemas.codec.records import format_rfc3339

_LAYERS: Final[dict[str, Layer]] = {
    "PodExists": "queue", "QuotaLeft": "queue", "QueueHasRoom": "queue",
    "FreeOfGates": "gate", "ClaimsReady": "gate", "DeviceClaimsReady": "gate", "GangComplete": "gate",
    "ReservationHolds": "bind", "SlurmStarted": "bind", "ChoiceHeld": "bind",
    "NodeUnlocked": "bind", "SchedulerMayBind": "bind", "Bound": "bind",
    "TakenByNode": "start", "Starts": "start",
}  # fmt: skip
"""Layer of a question of the tree; the others are about nodes."""
_OF_STATES: Final[dict[str, Layer]] = {
    "gated": "gate", "refused": "nodes", "not judged": "nodes", "binding": "bind",
}  # fmt: skip
"""Layer of a state without an obstacle."""
_LAYERS_OF_CODES: Final[tuple[tuple[str, Layer], ...]] = (
    ("Kueue", "queue"), ("Queue", "queue"), ("Quota", "queue"), ("UserQuota", "queue"), ("ElasticQuota", "queue"),
    ("Yunikorn", "queue"), ("RequestRejected", "queue"), ("Placeholders", "queue"),
    ("GroupNotEnqueued", "queue"), ("GroupNeverFits", "queue"), ("OwnerRefused", "queue"),
    ("LimitRangeBroken", "queue"),
    ("PodSecurityRefused", "queue"), ("SecurityContextRefused", "queue"), ("WebhookUnreachable", "queue"),
    ("PodInvalid", "queue"), ("ServiceAccountMissing", "queue"), ("PriorityClassMissing", "queue"),
    ("PodDenied", "queue"),
    ("Cron", "queue"), ("StatefulSetOrder", "queue"), ("JobFailed", "queue"),
    ("WorkloadSuspended", "queue"), ("WorkloadSays", "queue"), ("PodsNot", "queue"),
    ("ClaimNotOnNode", "nodes"), ("ClaimOfOnePod", "nodes"),
    ("Gang", "gate"), ("SchedulingGated", "gate"), ("Claim", "gate"), ("DeviceClaim", "gate"), ("DeviceClass", "gate"),
    ("DeviceSelector", "gate"),
    ("Kubelet", "start"), ("Evicted", "start"), ("Preempted", "start"), ("Reclaimed", "start"), ("Allocation", "start"),
    ("RejectedByScheduler", "start"), ("NodeNotThere", "start"),
    ("Bind", "bind"), ("Permit", "bind"), ("node lock", "bind"), ("Reservation", "bind"), ("Choice", "bind"),
    ("Slurm", "bind"),
)  # fmt: skip
"""Layer by the beginning of an obstacle's code; the others are about nodes."""
_SECOND: Final = timedelta(seconds=1)
_KUEUE: Final = "Kueue"
_ADMITTED: Final = "KueueAdmitted"
_NO_LAYER: Final = ("PodMissing",)


def find_layer(steps: Sequence[TreeStep], obstacle: FoundObstacle) -> Layer | None:
    """Find the layer of an obstacle by the question that led to it; None for a pod that was deleted."""
    if obstacle.code in _NO_LAYER:
        return None
    if obstacle.code.startswith(_KUEUE) and not obstacle.code.startswith(_ADMITTED):
        return "queue"
    question = next((step.question for step in steps if any(entry is obstacle for entry in step.obstacles)), "")
    return _LAYERS.get(question, "nodes")


def find_layer_of_code(code: str) -> Layer | None:
    """Find the layer of an obstacle by its code only, for lists; None for a code that is no obstacle of a layer."""
    if not code:
        return None
    if code.startswith(_ADMITTED):
        return "gate"
    return next((layer for begin, layer in _LAYERS_OF_CODES if code.startswith(begin)), "nodes")


def derive_layer(state: str, *, is_starting: bool) -> Layer | None:
    """Derive the layer of a pod without an obstacle; None if it waits nowhere, or if nobody knows."""
    return "start" if is_starting else _OF_STATES.get(state)


class _Span(NamedTuple):
    layer: Layer
    since: datetime | None
    until: datetime | None


def list_waits(moments: Sequence[Moment], layer: Layer | None, now: datetime) -> list[LayerWait]:
    """List the time in each layer; ``layer``: the one that holds the pod now, None if nothing does."""
    return [
        _to_wait(span.layer, span.since, span.until, now)
        for span in _iterate_spans(moments, layer)
        if span.since and (span.until or span.layer == layer)
    ]


def _to_wait(layer: Layer, since: datetime, until: datetime | None, now: datetime) -> LayerWait:
    # Objects have whole seconds: an end may seem to lie before its begin.
    until = max(since, until) if until else None
    return LayerWait(
        layer=layer,
        since=format_rfc3339(since),
        until=format_rfc3339(until) if until else None,
        waited_seconds=round(max(((until or now) - since).total_seconds(), 0.0), 3),
    )


def _iterate_spans(moments: Sequence[Moment], layer: Layer | None) -> Iterator[_Span]:
    """Iterate over the spans of time; one without an end counts only if the pod is there now."""
    times: dict[TimelineEvent, datetime] = {moment.event: moment.time for moment in moments}
    created, admitted, released = times.get("created"), times.get("admitted"), times.get("released")
    if "queued" in times or layer == "queue":
        since = times.get("queued") or created or times.get("owner created")
        yield _Span("queue", since, None if layer == "queue" else admitted)
    let_go = _find_latest(created, admitted)
    # Objects have whole seconds: a shorter time at a gate may be rounding.
    if layer == "gate" or (released and let_go and released - let_go >= _SECOND):
        yield _Span("gate", let_go, None if layer == "gate" else released)
    chosen, bound = times.get("chosen"), times.get("bound")
    if layer not in ("queue", "gate"):
        # Without the pod's object its first try is the earliest that is known.
        begin = _find_latest(let_go, released) or times.get("tried")
        yield _Span("nodes", begin, None if layer == "nodes" else chosen or bound)
    if chosen or layer == "bind":
        yield _Span(
            "bind", chosen or times.get("tried again") or times.get("tried"), None if layer == "bind" else bound
        )
    yield _Span("start", bound, None if layer == "start" else times.get("started") or times.get("rejected"))


def _find_latest(*times: datetime | None) -> datetime | None:
    return max((time for time in times if time), default=None)
