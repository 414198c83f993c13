"""Attempts of the real kube-scheduler, and the objects that it decides on as the input of a judge."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

import httpx

from schemas.json_types import Json
from tests.support.control_plane.objects import MERGE_PATCH, create
from tests.support.waiting import eventually

_LISTS: Final = (
    *(f"/api/v1/{name}" for name in ("nodes", "pods", "namespaces", "persistentvolumeclaims", "persistentvolumes")),
    *(
        f"/apis/storage.k8s.io/v1/{name}"
        for name in ("storageclasses", "csinodes", "csidrivers", "csistoragecapacities", "volumeattachments")
    ),
    *(f"/apis/resource.k8s.io/v1/{name}" for name in ("resourceclaims", "resourceslices", "deviceclasses")),
)
_VOLUMES: Final = "/api/v1/persistentvolumes"


@dataclass(frozen=True, slots=True)
class Scheduled:
    """Result of kube-scheduler's attempt at a pod."""

    node: str
    """Node of a placed pod."""
    reason: str
    """Reason of the condition PodScheduled of a pod that waits."""
    message: str
    """Text of that condition, uncut."""


def read_objects(client: httpx.Client) -> list[Json]:
    """Read every object that a filter looks at; the lists are of one kind each."""
    answers = [client.get(path, timeout=60).raise_for_status() for path in _LISTS]
    return [answer.json() for answer in answers]


def schedule_pod(client: httpx.Client, namespace: str, pod: Json) -> tuple[Json, Scheduled]:
    """Create a pod, and return it as the API server stores it, with what kube-scheduler makes of it."""
    pods = f"/api/v1/namespaces/{namespace}/pods"
    created = create(client, pods, pod)
    return created, await_result(client, f"{pods}/{created['metadata']['name']}")


def await_result(client: httpx.Client, path: str) -> Scheduled:
    """Wait until kube-scheduler, or the API server for a gated pod, has written on the pod."""
    result = eventually(lambda: read_result(client, path), f"{path} was not tried")
    assert result
    return result


def read_result(client: httpx.Client, path: str) -> Scheduled | None:
    """Read what kube-scheduler has written on the pod; None as long as it is nothing."""
    bind_volumes(client)
    pod = client.get(path).raise_for_status().json()
    if node := pod["spec"].get("nodeName"):
        return Scheduled(node, "", "")
    conditions = pod.get("status", {}).get("conditions", [])
    refusals = [condition for condition in conditions if condition["type"] == "PodScheduled"]
    return Scheduled("", refusals[0]["reason"], refusals[0].get("message", "")) if refusals else None


def delete_objects(client: httpx.Client, paths: Iterable[str]) -> None:
    """Delete objects one after the other, each gone before the next.

    Nothing here gives up the finalizers of claims and volumes: the controllers that do so are not started.
    """
    for path in paths:
        client.patch(path, content='{"metadata": {"finalizers": null}}', headers=MERGE_PATCH)
        client.request("DELETE", path, json={"gracePeriodSeconds": 0})
        eventually(partial(_is_gone, client, path), f"{path} is not deleted")


def _is_gone(client: httpx.Client, path: str) -> bool:
    return client.get(path).status_code == httpx.codes.NOT_FOUND


def create_volume(client: httpx.Client, volume: Json) -> None:
    """Create a PersistentVolume, available as the controller of volumes would make it."""
    name = create(client, _VOLUMES, volume)["metadata"]["name"]
    _write_phase(client, f"{_VOLUMES}/{name}", "Available")


def bind_volumes(client: httpx.Client) -> None:
    """Do what the controller of volumes does after kube-scheduler has chosen volumes for claims."""
    for volume in client.get(_VOLUMES).raise_for_status().json()["items"]:
        name, claim = volume["metadata"]["name"], volume["spec"].get("claimRef")
        if claim and volume["status"]["phase"] == "Available":
            path = f"/api/v1/namespaces/{claim['namespace']}/persistentvolumeclaims/{claim['name']}"
            bind_claim(client, path, name)
            _write_phase(client, f"{_VOLUMES}/{name}", "Bound")


def bind_claim(client: httpx.Client, path: str, volume: str) -> None:
    """Bind a claim to a volume."""
    change = {
        "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": volume},
    }
    client.patch(path, content=json.dumps(change), headers=MERGE_PATCH).raise_for_status()
    _write_phase(client, path, "Bound")


def _write_phase(client: httpx.Client, path: str, phase: str) -> None:
    body = json.dumps({"status": {"phase": phase}})
    client.patch(f"{path}/status", content=body, headers=MERGE_PATCH).raise_for_status()
