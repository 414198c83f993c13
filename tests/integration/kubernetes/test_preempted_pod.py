"""A pod that kube-scheduler preempted and that is gone: by whom, when and why, from the index only."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from dev.embedded.control_plane import ControlPlane
from schemas.json_types import Json
from tests.support.chromium import chromium
from tests.support.control_plane.objects import create, created_namespace, created_nodes
from tests.support.control_plane.plain_scheduler import a_pod
from tests.support.harness.api_process import Served, serving
from tests.support.harness.pipeline_process import pipeline
from tests.support.harness.watched_cluster import watching_cluster
from tests.support.reused_backends import reused_backends
from tests.support.visitor import Visitor
from tests.support.waiting import eventually, until

NAMESPACE: Final = "preempted"
AMOUNTS: Final = {"cpu": "4", "memory": "8Gi", "pods": "110"}
CLASSES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"


@pytest.fixture
def cluster(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """A control plane with a node for one of two pods, the second of which may preempt the first."""
    control_plane.start_scheduler({})
    node = {"metadata": {"name": "preempted-0"}, "status": {"allocatable": AMOUNTS, "capacity": AMOUNTS}}
    with (
        created_namespace(control_plane, NAMESPACE),
        created_nodes(control_plane, [node]),
        control_plane.open_client() as client,
    ):
        create(client, CLASSES, {"metadata": {"name": "urgent-training"}, "value": 1000})
        yield control_plane
        client.delete(f"{CLASSES}/urgent-training")


def add_pod(client: httpx.Client, name: str, **spec: Any) -> None:
    containers = [{"name": "main", "image": "i", "resources": {"requests": {"cpu": "3"}}}]
    pod = a_pod(name, schedulerName="default-scheduler", containers=containers, **spec)
    create(client, f"/api/v1/namespaces/{NAMESPACE}/pods", pod)


def read_pod(client: httpx.Client, name: str) -> Json:
    answer: Json = client.get(f"/api/v1/namespaces/{NAMESPACE}/pods/{name}").json()
    return answer


def test_a_preempted_pod_that_is_gone_names_who_took_its_place_when_and_why(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    with (
        reused_backends.taken() as servers,
        pipeline(tmp_path, servers) as running,
        # Without a connection to the API server: the index has all that is left of the pod.
        serving(servers.bootstrap_servers, servers.opensearch_url) as api,
        cluster.open_client() as client,
    ):
        # The process that writes observations; no attempt of the pod is in the index.
        running.start_placements()
        with watching_cluster(cluster.kubeconfig, servers.bootstrap_servers, tmp_path):
            add_pod(client, "low")
            eventually(lambda: read_pod(client, "low")["spec"].get("nodeName"), "the first pod has no node")
            # Once the watcher has begun: a pod that went before that leaves only its events.
            eventually(lambda: diagnose(api, "low").get("state") == "placed", "the first pod is not observed")
            add_pod(client, "high", priorityClassName="urgent-training")
            eventually(lambda: read_pod(client, "high")["spec"].get("nodeName"), "the second pod has no node")
            eventually(lambda: read_pod(client, "low").get("code") == httpx.codes.NOT_FOUND, "the first is still there")
            answer = until(lambda: diagnose(api, "low"), has_winner)
            page = read_page(api, "low")
    assert answer["obstacle"], answer
    assert answer["obstacle"]["code"] == "Preempted"
    sentence = answer["sentence"]["en"]
    assert "default-scheduler preempted the pod on node preempted-0" in sentence
    assert "to make room for a pod of higher priority: preempted/high" in sentence, "by whom, and why"
    assert " at " in sentence, "when"
    assert "UTC" in sentence
    assert sentence in page


def diagnose(api: Served, name: str) -> Json:
    answer = api.get(f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/diagnosis")
    body: Json = answer.json()
    return body if answer.status_code == httpx.codes.OK else {}


def has_winner(answer: Json) -> bool:
    return "preempted/high" in answer.get("sentence", {}).get("en", "")


def read_page(api: Served, name: str) -> str:
    with chromium() as browser, browser.new_context(locale="en") as context:
        visitor = Visitor(context.new_page(), str(api.client.base_url).rstrip("/"))
        visitor.open(f"/ui/pods/{NAMESPACE}/{name}")
        return visitor.page.locator("main").inner_text()
