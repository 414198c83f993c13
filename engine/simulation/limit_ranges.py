"""LimitRanges on a pod that does not exist yet: the amounts that they give it, and the bounds that it breaks.

The rules are those of the API server's admission of LimitRanges. The amounts that it derives from the bounds of a
stored LimitRange are derived here too, because a file may lack them.
"""

from collections.abc import Iterable, Iterator
from typing import Final, Literal, NamedTuple

from engine.diagnosis.outcome import FoundObstacle, Word
from engine.diagnosis.texts import write_phrase
from engine.snapshot.fields import Object, read_nanos
from engine.snapshot.quantity import NANO, format_amount, round_nano
from engine.snapshot.requests import Nanos, sum_limits, sum_requests
from runtime.kubernetes.object_fields import get_object, get_text, iterate_objects
from schemas.json_types import Json

_CONTAINERS: Final = ("containers", "initContainers")
_BOUNDS: Final = ("min", "max", "maxLimitRequestRatio")
Observed = Literal["request", "limit", "ratio", "no_request", "no_limit"]


class BrokenBound(NamedTuple):
    """A bound of a LimitRange that a container does not keep, or the pod as a whole."""

    limit_range: Object
    field: str
    """Field of the LimitRange: ``min``, ``max`` or ``maxLimitRequestRatio``."""
    resource: str
    bound: int
    """Bound in billionths."""
    container: str
    """Name of the container; empty for the pod."""
    observed: Observed
    amount: int
    """Amount in billionths that does not keep it."""

    def describe(self) -> FoundObstacle:
        """Describe the refusal of the API server."""
        metadata = get_object(self.limit_range, "metadata")
        of_container = {"container": self.container} if self.container else {}
        subject = write_phrase("limit_of_container" if of_container else "limit_of_pod", **of_container)
        per = write_phrase("limit_container" if of_container else "limit_pod")
        bound = self._format(self.bound, is_ratio=self.field == "maxLimitRequestRatio")
        words: dict[str, Word] = {
            "range": get_text(metadata, "name"),
            "namespace": get_text(metadata, "namespace"),
            "allowed": write_phrase(
                f"limit_{self.field}",
                bound=bound,
                resource=self.resource,
                per=per,
            ),
            "observed": write_phrase(
                f"limit_{self.observed}",
                subject=subject,
                amount=self._format(self.amount, is_ratio=self.observed == "ratio"),
            ),
        }
        return FoundObstacle("LimitRangeRefusesPod", words)

    def _format(self, nano: int, *, is_ratio: bool) -> str:
        return f"{nano / NANO:.3g}" if is_ratio else format_amount(self.resource, round_nano(self.resource, nano))


def select_limit_ranges(objects: Iterable[Json], namespace: str) -> list[Json]:
    """Select the LimitRanges of a namespace, by name."""
    ranges = [item for item in objects if (get_text(item, "metadata", "namespace") or "default") == namespace]
    return sorted(ranges, key=lambda item: get_text(item, "metadata", "name"))


def write_amounts(pod: Json, limit_range: Object) -> Json:
    """Return the pod with the amounts that a LimitRange gives to containers that name none."""
    limits, requests = _derive_amounts(limit_range)
    if not (limits or requests):
        return pod
    spec = get_object(pod, "spec")
    listed = {
        kind: [_write_container(container, limits, requests) for container in iterate_objects(spec, kind)]
        for kind in _CONTAINERS
        if kind in spec
    }
    return {**pod, "spec": {**spec, **listed}}


def _write_container(container: Object, limits: Object, requests: Object) -> Json:
    resources = get_object(container, "resources")
    amounts = {
        "limits": {**limits, **get_object(resources, "limits")},
        "requests": {**requests, **get_object(resources, "requests")},
    }
    return {**container, "resources": {**resources, **amounts}}


def _derive_amounts(limit_range: Object) -> tuple[Json, Json]:
    """Derive limits and requests of containers: the LimitRange's own, else its largest and its smallest amounts."""
    limits: Json = {}
    requests: Json = {}
    for item in iterate_objects(limit_range, "spec", "limits"):
        if get_text(item, "type") == "Container":
            default = {**get_object(item, "max"), **get_object(item, "default")}
            limits |= default
            requests |= {**get_object(item, "min"), **default, **get_object(item, "defaultRequest")}
    return limits, requests


def find_broken_bound(pod: Object, ranges: Iterable[Object]) -> BrokenBound | None:
    """Find the first bound that the pod does not keep. Raises `FieldError` for an amount that is none."""
    return next((broken for limit_range in ranges for broken in _iterate_broken(pod, limit_range)), None)


def _iterate_broken(pod: Object, limit_range: Object) -> Iterator[BrokenBound]:
    spec = get_object(pod, "spec")
    for item in iterate_objects(limit_range, "spec", "limits"):
        match get_text(item, "type"):
            case "Container":
                for kind in _CONTAINERS:
                    for container in iterate_objects(spec, kind):
                        resources = get_object(container, "resources")
                        amounts = read_nanos(resources, "requests"), read_nanos(resources, "limits")
                        yield from _compare(limit_range, item, get_text(container, "name"), *amounts)
            case "Pod":
                # Containers only: what the runtime class adds does not count.
                yield from _compare(
                    limit_range, item, "", sum_requests(pod, has_overhead=False), sum_limits(pod, has_overhead=False)
                )


def _compare(
    limit_range: Object, item: Object, container: str, requests: Nanos, limits: Nanos
) -> Iterator[BrokenBound]:
    for field in _BOUNDS:
        for resource, bound in read_nanos(item, field).items():
            failure = _CHECKS[field](requests.get(resource), limits.get(resource), bound)
            if failure:
                yield BrokenBound(limit_range, field, resource, bound, container, *failure)


def _check_min(request: int | None, limit: int | None, bound: int) -> tuple[Observed, int] | None:
    if request is None:
        return "no_request", 0
    if request < bound:
        return "request", request
    return ("limit", limit) if limit is not None and limit < bound else None


def _check_max(request: int | None, limit: int | None, bound: int) -> tuple[Observed, int] | None:
    if limit is None:
        return "no_limit", 0
    if limit > bound:
        return "limit", limit
    return ("request", request) if request is not None and request > bound else None


def _check_ratio(request: int | None, limit: int | None, bound: int) -> tuple[Observed, int] | None:
    if not request:
        return "no_request", 0
    if not limit:
        return "no_limit", 0
    return ("ratio", limit * NANO // request) if limit * NANO > bound * request else None


_CHECKS: Final = {"min": _check_min, "max": _check_max, "maxLimitRequestRatio": _check_ratio}
