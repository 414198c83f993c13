"""Stands in for HAMi's device plugins of all nodes: without them nobody gives a node's lock back.

A real one answers the kubelet's Allocate, marks the pod's binding as done and removes the lock; here a watch of the
pods takes the kubelet's place (kwok plays the rest of it).
"""

import json
import threading
from contextlib import suppress
from typing import Self

import httpx

from dev.embedded.control_plane import ControlPlane
from schemas.json_types import Json
from tests.support.control_plane.objects import LOCK, annotate, get_annotations

PHASE = "hami.io/bind-phase"
METADATA = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}


class DevicePlugins:
    """Device plugins of the nodes that the pods of one namespace are bound to, while the context lasts."""

    def __init__(self, cluster: ControlPlane, namespace: str) -> None:
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._cluster = cluster
        self._ends = threading.Event()
        self.bound: set[str] = set()
        """Names of the pods that were seen on a node."""
        self._watching = cluster.open_client()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join(15)
        self._watching.close()

    def _run(self) -> None:
        with self._cluster.open_client() as writing:
            while not self._ends.is_set():
                # A watch that broke off, or a pod that was deleted meanwhile: from the beginning, with all pods again.
                with suppress(httpx.HTTPError, json.JSONDecodeError, AssertionError, KeyError):
                    self._watch(writing)

    def _watch(self, writing: httpx.Client) -> None:
        query = {"watch": "1", "timeoutSeconds": "5"}
        with self._watching.stream("GET", self._path, params=query, timeout=10) as events:
            for line in events.iter_lines():
                event = json.loads(line)
                if event["type"] in {"ADDED", "MODIFIED"} and event["object"]["spec"].get("nodeName"):
                    self.bound.add(event["object"]["metadata"]["name"])
                    if get_annotations(event["object"]).get(PHASE) == "allocating":
                        self._allocate(writing, event["object"])

    def _allocate(self, writing: httpx.Client, pod: Json) -> None:
        # The phase last: it says that nothing is left to do, and the API server may be killed in between.
        node = f"/api/v1/nodes/{pod['spec']['nodeName']}"
        held = get_annotations(writing.get(node, headers=METADATA).json()).get(LOCK, "")
        if held.endswith(f",{pod['metadata']['namespace']},{pod['metadata']['name']}"):
            annotate(writing, node, {LOCK: None})
        annotate(writing, f"{self._path}/{pod['metadata']['name']}", {PHASE: "success"})
