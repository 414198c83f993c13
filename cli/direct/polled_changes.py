"""Changes of pods on a live cluster, found by reading it again: each as the API's watches give it."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from cli.client.problems import NotFound, Problem
from cli.client.transport import WatchedChange
from schemas.json_types import Json

PAUSE_SECONDS: Final = 5.0
"""Pause between two readings of the cluster."""
Read = Callable[[], Json | Problem]
_PLACED: Final = ("placed", "ended")


def iterate_pod_changes(
    read: Read, *, has_initial: bool, sleep: Callable[[float], None]
) -> Iterator[WatchedChange | Problem]:
    """Iterate over the changes of one pod's diagnosis; ends after the pod was deleted, or with a problem."""
    previous: tuple[str, str] | None = None
    while True:
        diagnosis = read()
        if isinstance(diagnosis, NotFound) and previous is not None:
            return
        if isinstance(diagnosis, Problem):
            yield diagnosis
            return
        current = diagnosis["state"], diagnosis["sentence"]["en"]
        if current != previous and (previous is not None or has_initial):
            yield WatchedChange("MODIFIED" if previous else "ADDED", _to_object(diagnosis))
        previous = current
        sleep(PAUSE_SECONDS)


def _to_object(diagnosis: Json) -> dict[str, Any]:
    """Convert a diagnosis to what a watch of a pod gives: its status, and the sentence as the summary of its phase."""
    is_placed = diagnosis["state"] in _PLACED
    sentence = diagnosis["sentence"]["en"].rstrip(".")
    return {
        "metadata": {"namespace": diagnosis["namespace"], "name": diagnosis["name"]},
        "status": "succeeded" if is_placed else "failed",
        "filter": {"status": "passed" if is_placed else "failed", "summary": "" if is_placed else sentence},
        "bind": {"status": "passed" if is_placed else "", "summary": sentence if is_placed else ""},
    }


def iterate_waiting_changes(
    read: Read, *, has_initial: bool, sleep: Callable[[float], None]
) -> Iterator[WatchedChange | Problem]:
    """Iterate over the changes of the waiting pods: those that begin to wait, wait for something else, or no longer."""
    previous: dict[tuple[str, str], Json] | None = None
    while True:
        answer = read()
        if isinstance(answer, Problem):
            yield answer
            return
        current = {(item["namespace"], item["name"]): item for item in answer["items"]}
        if previous is not None or has_initial:
            yield from _compare(previous or {}, current)
        previous = current
        sleep(PAUSE_SECONDS)


def _compare(before: dict[tuple[str, str], Json], after: dict[tuple[str, str], Json]) -> Iterator[WatchedChange]:
    for key, item in after.items():
        if key not in before:
            yield WatchedChange("ADDED", _to_waiting(item))
        elif before[key]["obstacle"] != item["obstacle"]:
            yield WatchedChange("MODIFIED", _to_waiting(item))
    for key in before.keys() - after.keys():
        yield WatchedChange("DELETED", _to_waiting(before[key]))


def _to_waiting(item: Json) -> dict[str, Any]:
    return {"metadata": {"namespace": item["namespace"], "name": item["name"]}, **item}
