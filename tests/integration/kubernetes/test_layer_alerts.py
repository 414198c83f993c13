"""Alerts about the layers around a scheduler, from objects of the cluster to the topic, ``GET /alerts`` and the page.

The controllers of Kueue, of gangs and of the autoscaler do not run: their objects, conditions and events are written as
they write them. No kubelet runs on the node that refuses pods either.
"""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from dev.embedded.control_plane import ControlPlane
from schemas.codec.records import decode
from schemas.events import AlertChanged
from schemas.json_types import Json
from schemas.topics import ALERTS
from tests.support.chromium import chromium
from tests.support.control_plane.objects import create, created_namespace
from tests.support.control_plane.queue_systems import SIBLING_GROUPS, create_custom, created_kinds
from tests.support.control_plane.waiting_systems import Systems, a_pod
from tests.support.harness.api_process import Served, serving
from tests.support.harness.forked import Forked
from tests.support.harness.pipeline_process import Pipeline, pipeline
from tests.support.reused_backends import reused_backends
from tests.support.visitor import Visitor
from tests.support.waiting import until

RULES: Final = """
rules:
  - {name: QueueBlocked, kind: queue, for_minutes: 0.1}
  - {name: GangIncomplete, kind: gang, for_minutes: 0.1}
  - {name: KubeletRefusesPods, kind: kubelet, at_least: 2}
  - {name: AutoscalerCannotHelp, kind: autoscaler, for_minutes: 0.01}
"""
NOT_ADDED: Final = "pod didn't trigger scale-up: 1 max node group size reached"
REFUSED: Final = "Pod was rejected: Allocate failed due to requested number of devices unavailable for x.org/gpu"
NODE: Final = "alerts-unmanaged"
SUMMARIES: Final = {
    "QueueBlocked": ("queue night of {} has let no pod go", "{} 的队列 night 已有"),
    "GangIncomplete": ("of group ring in {} have waited", "{} 的组 ring 有"),
    "KubeletRefusesPods": (f"the kubelet of {NODE} has refused 2 pods", f"{NODE} 的 kubelet 已拒绝 2 个 Pod"),
    "AutoscalerCannotHelp": ("the autoscaler has had no node for {}/large", "自动扩容已有"),
}
"""Parts of the alerts' summaries by rule, in English and Chinese; the braces are the namespace."""


@pytest.fixture
def systems(control_plane: ControlPlane) -> Iterator[Systems]:
    """A namespace whose queue, gang, kubelet and autoscaler each hold something."""
    name = f"alerts-{uuid.uuid4().hex[:8]}"
    with (
        created_kinds(control_plane),
        created_namespace(control_plane, name),
        control_plane.open_client() as client,
    ):
        systems = Systems(client, name)
        systems.add_kueue()
        add_gang(systems)
        systems.add_pod("large", containers=[{"name": "c", "image": "i", "resources": {"requests": {"cpu": "640"}}}])
        systems.add_event("Pod", "large", "NotTriggerScaleUp", NOT_ADDED, "cluster-autoscaler")
        yield systems


def add_gang(systems: Systems) -> None:
    """Create two members of a group that needs four."""
    group = {"metadata": {"name": "ring"}, "spec": {"minMember": 4}}
    create_custom(systems.client, SIBLING_GROUPS, systems.namespace, group)
    labels = {"scheduling.x-k8s.io/pod-group": "ring"}
    for member in ("ring-0", "ring-1"):
        systems.add_pod(member, schedulerName="scheduler-plugins-scheduler", labels=labels)


def add_refused_pods(systems: Systems) -> None:
    """Create pods that a kubelet refused; Kubernetes deletes those of a node that does not exist after a while."""
    for name in ("refused-0", "refused-1"):
        if systems.client.get(f"{systems.root}/pods/{name}").status_code == httpx.codes.NOT_FOUND:
            create(systems.client, f"{systems.root}/pods", a_pod(name, nodeName=NODE))
            status = {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": REFUSED}
            systems.patch_status(name, status)


def list_alerts(api: Served) -> dict[str, Json]:
    """List the alerts that fire, by rule."""
    answer = api.get("/api/v1/alerts")
    items = answer.json()["items"] if answer.status_code == httpx.codes.OK else []
    return {item["rule"]: item for item in items}


def list_alerts_again(api: Served, systems: Systems) -> dict[str, Json]:
    """List the alerts while the refused pods stay."""
    add_refused_pods(systems)
    return list_alerts(api)


def list_fired(running: Pipeline) -> dict[str, AlertChanged]:
    """List the alerts on the topic that began to fire, by rule."""
    events = (decode(record.value, record.headers) for record in running.read_topic(ALERTS.name))
    return {event.rule: event for event in events if isinstance(event, AlertChanged) and event.state == "firing"}


def read_page(api: Served, language: str) -> str:
    with chromium() as browser, browser.new_context(locale=language) as context:
        visitor = Visitor(context.new_page(), str(api.client.base_url).rstrip("/"))
        visitor.open("/ui/alerts")
        return visitor.page.locator("main").inner_text()


def test_each_kind_of_alert_about_a_layer_comes_from_objects(
    control_plane: ControlPlane, systems: Systems, tmp_path: Path
) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES)
    with (
        reused_backends.taken() as servers,
        pipeline(tmp_path, servers) as running,
        serving(servers.bootstrap_servers, servers.opensearch_url) as api,
        (tmp_path / "processes.log").open("ab") as log,
    ):
        files: dict[str, Any] = {"stdout": log, "stderr": log}
        kafka = ("--kafka", servers.bootstrap_servers)
        config = str(control_plane.kubeconfig)
        processes = [
            Forked("pipeline", "alerts", *kafka, "--rules", str(rules), "--group", f"alerts-{uuid.uuid4()}", **files),
            Forked("ingest", "kube-events", "--kubeconfig", config, *kafka, **files),
        ]
        try:
            listed = until(lambda: list_alerts_again(api, systems), lambda alerts: alerts.keys() >= SUMMARIES.keys())
            fired = list_fired(running)
            pages = {language: read_page(api, language) for language in ("en", "zh-CN")}
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait(timeout=120)
    for rule, (english, chinese) in SUMMARIES.items():
        assert rule in listed, f"{rule} does not fire; the topic has {sorted(fired)}"
        assert english.format(systems.namespace) in listed[rule]["summary"]
        assert chinese.format(systems.namespace) in listed[rule]["summary_zh"]
        assert fired[rule].summary == listed[rule]["summary"]
        assert listed[rule]["summary"] in pages["en"]
        assert listed[rule]["summary_zh"] in pages["zh-CN"]
