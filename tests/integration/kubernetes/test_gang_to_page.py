"""A gang of Kubernetes itself that does not fit: from the cluster over events, index and API to the page.

kube-scheduler places the group, with the feature gates that it needs; nothing of what it writes is made up.
"""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import httpx
import orjson
import pytest

from dev.embedded.control_plane import ControlPlane
from dev.embedded.control_plane import control_plane as running_control_plane
from dev.embedded.control_plane.cluster import CORE
from dev.embedded.control_plane.programs import AlphaFeatures
from engine.cases.simulating import simulate_on_case
from engine.snapshot.case_objects import collect_objects
from schemas.json_types import Json
from tests.support.chromium import chromium
from tests.support.control_plane.objects import create, created_namespace, created_nodes
from tests.support.control_plane.plain_scheduler import a_pod
from tests.support.control_plane.scheduled_pods import delete_objects, read_objects
from tests.support.harness.api_process import Served
from tests.support.harness.watched_cluster import watched_api
from tests.support.visitor import Visitor
from tests.support.waiting import eventually, until

GANGS: Final = AlphaFeatures(gates=("GenericWorkload", "GangScheduling"), apis=("scheduling.k8s.io/v1alpha2",))
GROUPS: Final = "/apis/scheduling.k8s.io/v1alpha2/namespaces/{}/podgroups"
NAMESPACE: Final = "rings"
GPU: Final = "nvidia.com/gpu"
NODE: Final = "rings-0"
AMOUNTS: Final = {"cpu": "16", "memory": "64Gi", "pods": "110", GPU: "4"}
MEMBERS: Final = ("ring-0", "ring-1", "ring-2")


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    """A control plane that schedules groups; one of its own, as the gates are for all programs."""
    with running_control_plane(names=(*CORE, "kwok"), alpha=GANGS) as running:
        running.start_scheduler({})
        yield running


def a_gpu_pod(name: str, gpus: int, **spec: Any) -> Json:
    amounts = {"cpu": "100m", GPU: str(gpus)}
    resources = {"requests": amounts, "limits": {GPU: str(gpus)}}
    return a_pod(
        name,
        schedulerName="default-scheduler",
        containers=[{"name": "main", "image": "i", "resources": resources}],
        **spec,
    )


@pytest.fixture(scope="module")
def gang(cluster: ControlPlane) -> Iterator[None]:
    """A group of three with a GPU each, of which two are free: the other two are held by one pod."""
    node = {"metadata": {"name": NODE}, "status": {"allocatable": AMOUNTS, "capacity": AMOUNTS}}
    with created_namespace(cluster, NAMESPACE), created_nodes(cluster, [node]), cluster.open_client() as client:
        pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
        create(client, pods, a_gpu_pod("holder", 2))
        eventually(lambda: has_node(client, "holder"), "the pod that holds GPUs has no node")
        policy = {"gang": {"minCount": len(MEMBERS)}}
        create(client, GROUPS.format(NAMESPACE), {"metadata": {"name": "ring"}, "spec": {"schedulingPolicy": policy}})
        for name in MEMBERS:
            create(client, pods, a_gpu_pod(name, 1, schedulingGroup={"podGroupName": "ring"}))
        eventually(lambda: any(is_refused(client, name) for name in MEMBERS), "kube-scheduler has refused no member")
        yield


def read_pod(client: httpx.Client, name: str) -> Json:
    answer: Json = client.get(f"/api/v1/namespaces/{NAMESPACE}/pods/{name}").json()
    return answer


def has_node(client: httpx.Client, name: str) -> bool:
    return bool(read_pod(client, name)["spec"].get("nodeName"))


def is_refused(client: httpx.Client, name: str) -> bool:
    conditions = read_pod(client, name)["status"].get("conditions", [])
    return any(entry["type"] == "PodScheduled" and entry["status"] == "False" for entry in conditions)


def test_a_gang_that_does_not_fit_is_followed_to_its_page(cluster: ControlPlane, gang: None, tmp_path: Path) -> None:
    with watched_api(cluster.kubeconfig, tmp_path) as api:
        pending = until(lambda: list_pending(api), lambda items: {item["name"] for item in items} == set(MEMBERS))
        answers = {name: until(lambda name=name: diagnose(api, name), has_attempt) for name in MEMBERS}  # type: ignore[misc]
        pages = {name: read_page(api, name) for name in MEMBERS}
    assert {item["name"] for item in pending} == set(MEMBERS)
    codes = {name: answer["obstacle"]["code"] for name, answer in answers.items()}
    # Which member is the last that fits nowhere is up to kube-scheduler.
    (blamed,) = [name for name, code in codes.items() if code != "GangGaveBack"]
    for name in {*MEMBERS} - {blamed}:
        sentence = answers[name]["sentence"]["en"]
        assert f"{blamed}: " in sentence, "the member that is the cause"
        assert f"too little {GPU} left" in sentence, "and why"
        assert "3 of 3 members exist" in sentence
        assert "2 of 3 members fit" in sentence, "how many have room now"
        assert f"{NAMESPACE}/holder" in sentence, "and who holds what the next one needs"
        assert sentence in pages[name]
    assert f"{NAMESPACE}/holder" in answers[blamed]["sentence"]["en"]


def list_pending(api: Served) -> list[Json]:
    answer = api.get("/api/v1/pending", namespace=NAMESPACE, group_by="pod")
    items: list[Json] = answer.json().get("items", []) if answer.status_code == httpx.codes.OK else []
    return items


def diagnose(api: Served, name: str) -> Json:
    answer = api.get(f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/diagnosis")
    body: Json = answer.json()
    return body if answer.status_code == httpx.codes.OK else {}


def has_attempt(answer: Json) -> bool:
    return any(moment["event"] == "tried" for moment in answer.get("timeline", []))


def read_page(api: Served, name: str) -> str:
    """Read the page of a member."""
    with chromium() as browser, browser.new_context(locale="en") as context:
        visitor = Visitor(context.new_page(), str(api.client.base_url).rstrip("/"))
        visitor.open(f"/ui/pods/{NAMESPACE}/{name}")
        return visitor.page.locator("main").inner_text()


def test_after_the_end_of_the_holder_that_a_suggestion_names_the_gang_is_placed(
    cluster: ControlPlane, gang: None, figure: Callable[[str], None]
) -> None:
    with cluster.open_client() as client:
        suggestion = suggest_end(client)
        began = time.monotonic()
        delete_objects(client, [f"/api/v1/namespaces/{NAMESPACE}/pods/holder"])
        eventually(lambda: all(has_node(client, name) for name in MEMBERS), suggestion["sentence"]["en"])
        assert {read_pod(client, name)["spec"]["nodeName"] for name in MEMBERS} == {suggestion["node"]}
        seconds = time.monotonic() - began
    figure(f"gang: {suggestion['sentence']['en']} All {len(MEMBERS)} placed {seconds:.1f} s after the change.")


def suggest_end(client: httpx.Client) -> Json:
    """Suggest the end of one pod to a simulation of all members."""
    members = [{"apiVersion": "v1", "kind": "Pod", **read_pod(client, name)} for name in MEMBERS]
    objects = collect_objects([*read_objects(client), client.get(GROUPS.format(NAMESPACE)).raise_for_status().json()])
    body = orjson.dumps({"apiVersion": "v1", "kind": "List", "items": members})
    answer = simulate_on_case(objects, body, NAMESPACE, None, datetime.now(UTC))
    items: list[Json] = answer["suggestions"]["items"]
    edits = [[(edit["constraint"], edit["where"]) for edit in item["edits"]] for item in items]
    return items[edits.index([("use", f"{NAMESPACE}/holder")])]
