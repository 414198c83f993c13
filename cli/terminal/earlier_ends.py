"""Pods whose end let a pod in: on its node, between its last refusal and its placement."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from cli.client.problems import Problem
from cli.client.requests import build_node_path
from cli.client.transport import Transport
from cli.terminal.screen import format_count
from cli.terminal.values import format_time, parse_time

MAX_ENDED_PODS: Final = 5
_PAGE: Final = "200"


class _Wait(NamedTuple):
    """The last refusal before a placement, and the placement: times of the API."""

    refused_at: str
    placed_at: str
    node: str


def describe_earlier_ends(
    transport: Transport, namespace: str, name: str, episodes: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Describe the ends after which a pod was placed that had been refused before; empty for any other pod.

    episodes: of its history, the latest first.
    """
    wait = _find_wait(episodes)
    if wait is None:
        return []
    answer = transport.get(build_node_path(wait.node, "occupancy"), {"since": wait.refused_at, "limit": _PAGE})
    if isinstance(answer, Problem):
        return [f"Who left {wait.node} before it is not known: {answer.cause}."]
    since, until = parse_time(wait.refused_at), parse_time(wait.placed_at)
    devices_of_pod = {
        device["uuid"]
        for item in answer["items"]
        if (item["namespace"], item["name"]) == (namespace, name)
        for device in item["devices"]
    }
    ended = [item for item in answer["items"] if item["ended_at"] and since <= parse_time(item["ended_at"]) <= until]
    span = f"between its last refusal at {format_time(wait.refused_at)} and its placement"
    if not ended:
        return [f"No pod is known to have ended on {wait.node} {span}."]
    ended.sort(key=lambda item: (-len(devices_of_pod & _list_devices(item)), item["ended_at"]))
    lines = [f"On {wait.node} {format_count(len(ended), 'pod')} ended {span}:"]
    lines += [_describe_end(item, devices_of_pod) for item in ended[:MAX_ENDED_PODS]]
    return lines


def _find_wait(episodes: Sequence[Mapping[str, Any]]) -> _Wait | None:
    if not episodes or episodes[0]["status"] != "succeeded" or not episodes[0]["chosen"]:
        return None
    refused = next((episode for episode in episodes[1:] if episode["status"] == "failed"), None)
    return _Wait(refused["last_seen_at"], episodes[0]["first_seen_at"], episodes[0]["chosen"]) if refused else None


def _list_devices(item: Mapping[str, Any]) -> set[str]:
    return {device["uuid"] for device in item["devices"]}


def _describe_end(item: Mapping[str, Any], devices_of_pod: set[str]) -> str:
    devices = _list_devices(item)
    text = f"{item['namespace']}/{item['name']} at {format_time(item['ended_at'])} ({item['ended_by']})"
    if not devices:
        return f"{text}, without devices."
    shared = len(devices & devices_of_pod)
    taken = f", {shared:,} of which the pod has" if shared else ""
    return f"{text}, which held {format_count(len(devices), 'device')}{taken}."
