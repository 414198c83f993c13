"""Problems that keep a pod from running on its node, and the start of its run, from the pod's status."""

from collections.abc import Iterator
from datetime import datetime

from runtime.kubernetes.object_fields import (
    CONTAINER_STATUSES,
    NEVER_RAN,
    STARTING,
    get_text,
    iterate_objects,
    parse_moment,
)
from schemas.events import ObjectProblem
from schemas.json_types import JsonView


def find_start(pod: JsonView) -> datetime | None:
    """Find the start of the first container that is no init container, as far as the status still has it."""
    return min(_iterate_starts(pod), default=None)


def _iterate_starts(pod: JsonView) -> Iterator[datetime]:
    for status in iterate_objects(pod, "status", "containerStatuses"):
        for path in (("state", "running"), ("state", "terminated"), ("lastState", "terminated")):
            is_run = get_text(status, *path, "reason") not in NEVER_RAN
            if is_run and (time := parse_moment(get_text(status, *path, "startedAt"))):
                yield time


def list_problems(pod: JsonView) -> list[ObjectProblem]:
    """List the kubelet's refusal of the pod, and the containers that can't start."""
    since = _find_latest_change(pod)
    if since is None:
        return []
    problems = [(get_text(pod, "status", "reason"), get_text(pod, "status", "message"), since)]
    problems += [problem for name in CONTAINER_STATUSES for status in iterate_objects(pod, "status", name)
              for problem in _iterate_container_problems(status, since)]  # fmt: skip
    return [
        ObjectProblem(reason=reason, message=message, at=began_at) for reason, message, began_at in problems if reason
    ]


def _iterate_container_problems(status: JsonView, since: datetime) -> Iterator[tuple[str, str, datetime]]:
    name = get_text(status, "name")
    waits = get_text(status, "state", "waiting", "reason")
    if waits not in STARTING:
        yield waits, _describe_container(name, get_text(status, "state", "waiting", "message")), since
    for state in ("state", "lastState"):
        reason = get_text(status, state, "terminated", "reason")
        if reason in NEVER_RAN:
            ended = parse_moment(get_text(status, state, "terminated", "finishedAt"))
            yield reason, _describe_container(name, get_text(status, state, "terminated", "message")), ended or since


def _describe_container(container: str, message: str) -> str:
    return f"container {container}: {message}" if message else f"container {container}"


def _find_latest_change(pod: JsonView) -> datetime | None:
    """Find a time that stays while the problem does: an observation with another time would be another observation."""
    changes = (get_text(entry, "lastTransitionTime") for entry in iterate_objects(pod, "status", "conditions"))
    stamps = (*changes, get_text(pod, "status", "startTime"), get_text(pod, "metadata", "creationTimestamp"))
    return max((time for stamp in stamps if stamp and (time := parse_moment(stamp))), default=None)
