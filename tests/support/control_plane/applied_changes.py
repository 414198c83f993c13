"""Suggestions applied on a real cluster: a pod waits, one edit is done to the cluster, and kube-scheduler places it."""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx
import orjson

from dev.embedded.control_plane import ControlPlane
from engine.cases.simulating import simulate_on_case
from engine.snapshot.case_objects import collect_objects
from schemas.json_types import Json
from tests.support.control_plane.objects import create, created_namespace, created_nodes
from tests.support.control_plane.plain_scheduler import SCHEDULER, a_pod
from tests.support.control_plane.scheduled_pods import (
    await_result,
    create_volume,
    delete_objects,
    read_objects,
    read_result,
)
from tests.support.waiting import eventually

DRIVER = "gpu.example.com"
DRA = "/apis/resource.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Scene:
    """A namespace, and the nodes that its pods may use."""

    client: httpx.Client
    stack: ExitStack
    namespace: str
    cluster: ControlPlane

    @property
    def pods(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def add(self, path: str, body: Json) -> None:
        """Create an object that is deleted with the scene."""
        name = create(self.client, path, body)["metadata"]["name"]
        self.stack.callback(delete_objects, self.client, [f"{path}/{name}"])

    def add_volume(self, body: Json) -> None:
        """Create a volume that is deleted with the scene."""
        create_volume(self.client, body)
        self.stack.callback(delete_objects, self.client, [f"/api/v1/persistentvolumes/{body['metadata']['name']}"])

    def add_nodes(self, *nodes: Json) -> None:
        """Create nodes that only pods of the scene use."""
        for node in nodes:
            node["metadata"]["labels"] = {"scene": self.namespace} | node["metadata"].get("labels", {})
        self.stack.enter_context(created_nodes(self.cluster, nodes))

    def replace_pod(self, pod: Json) -> None:
        """Create the pod again with another spec."""
        delete_objects(self.client, [f"{self.pods}/{pod['metadata']['name']}"])
        create(self.client, self.pods, pod)


Apply = Callable[[Scene, Json, Json], None]
"""Function that does one edit of a suggestion: of the scene, the pod as its owner wrote it, and the edit."""


@dataclass(frozen=True, slots=True)
class Case:
    """A pod that waits for one thing, and the suggestion that gives it."""

    constraint: str
    prepare: Callable[[Scene], None]
    apply: Apply
    spec: Json = field(default_factory=dict)
    requests: Json = field(default_factory=lambda: {"cpu": "1"})
    name: str = ""
    """Name of the test; that of the constraint if empty."""

    @property
    def id(self) -> str:
        """Name of the case."""
        return self.name or self.constraint


def a_cpu_node(name: str, cpu: str = "4", **fields: Any) -> Json:
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "110", **fields.pop("amounts", {})}
    status = {"allocatable": amounts, "capacity": amounts}
    return {"metadata": {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"}}, "status": status} | fields


def end_holder(scene: Scene, _: Json, edit: Json) -> None:
    namespace, _, name = edit["where"].partition("/")
    delete_objects(scene.client, [f"/api/v1/namespaces/{namespace}/pods/{name}"])


def lower_request(scene: Scene, pod: Json, edit: Json) -> None:
    container_name, _, resource = edit["where"].partition(": ")
    (container,) = pod["spec"]["containers"]
    assert container["name"] == container_name
    resources = {"requests": container["resources"]["requests"] | {resource: edit["after"]}}
    scene.replace_pod(pod | {"spec": pod["spec"] | {"containers": [container | {"resources": resources}]}})


def add_class(scene: Scene, name: str, *expressions: str) -> None:
    selectors = [{"cel": {"expression": text}} for text in (f"device.driver == '{DRIVER}'", *expressions)]
    scene.add(f"{DRA}/deviceclasses", {"metadata": {"name": name}, "spec": {"selectors": selectors}})


@contextmanager
def opened_scene(control_plane: ControlPlane) -> Iterator[Scene]:
    """A scene of a scheduler that tries refused pods again after a second."""
    name = f"changes-{uuid.uuid4().hex[:6]}"
    profiles = {"profiles": [{"schedulerName": SCHEDULER}], "podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1}
    if control_plane.scheduler.configuration != profiles or not control_plane.scheduler.is_alive:
        control_plane.start_scheduler(profiles)
    with ExitStack() as stack:
        client = stack.enter_context(control_plane.open_client())
        stack.enter_context(created_namespace(control_plane, name))
        yield Scene(client, stack, name, control_plane)


def apply_suggestion(scene: Scene, case: Case) -> str:
    """Let a pod wait, apply the suggestion of the case, and await its node; return the sentence with the time."""
    case.prepare(scene)
    spec = dict(case.spec)
    spec["nodeSelector"] = {"scene": scene.namespace} | spec.get("nodeSelector", {})
    pod = a_pod("waits", requests=case.requests, **spec)
    stored = create(scene.client, scene.pods, pod)
    path = f"{scene.pods}/waits"
    assert await_result(scene.client, path).reason == "Unschedulable"
    suggestion = suggest(scene, stored, case.constraint)
    began = time.monotonic()
    case.apply(scene, pod, suggestion["edits"][0])
    placed = eventually(lambda: find_node(scene, path), lambda: f"{suggestion}: {read_result(scene.client, path)}")
    assert placed == suggestion["node"]
    seconds = time.monotonic() - began
    return f"{case.id}: {suggestion['sentence']['en']} Placed {seconds:.1f} s after the change."


def find_node(scene: Scene, path: str) -> str:
    """Find the node of the pod; "" while it waits or is created again."""
    if scene.client.get(path).status_code == httpx.codes.NOT_FOUND:
        return ""
    result = read_result(scene.client, path)
    return result.node if result else ""


def suggest(scene: Scene, pod: Json, constraint: str, *more: Json) -> Json:
    """Return the suggestion whose only edit is of this kind. more: lists of objects that no filter reads."""
    objects = collect_objects([*read_objects(scene.client), *more])
    body = orjson.dumps({"apiVersion": "v1", "kind": "Pod"} | pod)
    answer = simulate_on_case(objects, body, scene.namespace, None, datetime.now(UTC))
    items: list[Json] = answer["suggestions"]["items"]
    of_kind = [item for item in items if [edit["constraint"] for edit in item["edits"]] == [constraint]]
    assert of_kind, [item["sentence"]["en"] for item in items]
    return of_kind[0]
