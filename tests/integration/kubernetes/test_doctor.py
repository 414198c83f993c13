"""`schedulerlog doctor` against the real API server: what deploy/ installs is sound, and one fault each is named."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from dev.embedded.control_plane import ControlPlane
from schemas.json_types import Json
from tests.support.control_plane.deployed import (
    KUSTOMIZE,
    NAMESPACE,
    OVERLAYS,
    apply,
    build,
    combine,
    define_others_kinds,
    emptied,
    list_pod_templates,
    select_kinds,
)
from tests.support.control_plane.objects import a_large_node, create, created_nodes
from tests.support.waiting import eventually

KINDS = ("Namespace", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "ConfigMap")
KAFKA, TLS = ("ca.crt", "tls.crt", "tls.key"), ("ca.crt", "tls.crt", "tls.key")
SECRETS = {
    "schedulerlog-kafka": KAFKA, "schedulerlog-opensearch": ("ca.crt", "password"), "schedulerlog-api-tls": TLS,
}  # fmt: skip
"""Secrets of the component `tls`, and that of the Job `schedulerlog-certificate`, with their keys (docs/deploy.md)."""
OPERATED = [
    "strimzi", "opensearch", "ism", "cert-manager", "prometheus", "grafana", "keda-tls/strimzi", "alertmanager",
    "raw-logs", "notify", "mcp", "dashboards", "diagnosis/nodes", "diagnosis/owners",
]  # fmt: skip
"""Components of a cluster with the operators of Kafka, certificates, metrics and scaling."""
OF_OPERATORS = {
    "kafka-cluster-ca-cert": ("ca.crt",), "schedulerlog-api-tls": TLS, "schedulerlog-mcp-tls": TLS,
    "schedulerlog-opensearch": ("ca.crt",), "schedulerlog-opensearch-administrator": ("username", "password"),
    **{f"schedulerlog-opensearch-{role}": ("password",) for role in ("writer", "reader", "provisioner")},
    "schedulerlog-notify-targets": ("targets.yaml",), "schedulerlog-dashboards": ("password",),
}  # fmt: skip


@pytest.fixture(scope="module")
def installed(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    with emptied(control_plane):
        apply(control_plane, select_kinds(build(control_plane, KUSTOMIZE / "overlays/scheduler"), *KINDS))
        yield control_plane


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """A control plane on whose node pods run."""
    define_others_kinds(control_plane)
    control_plane.start_scheduler({})
    with created_nodes(control_plane, [a_large_node("doctor-node")]):
        yield control_plane


def build_disks(objects: Sequence[Json]) -> list[Json]:
    """Build the claims of StatefulSets with a disk for each, bound as a cluster's controller binds them."""
    claims = [
        (f"{claim['metadata']['name']}-{item['metadata']['name']}-{number}", claim["spec"])
        for item in select_kinds(objects, "StatefulSet")
        for claim in item["spec"].get("volumeClaimTemplates", ())
        for number in range(item["spec"].get("replicas", 1))
    ]
    bound = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}, "namespace": NAMESPACE}
    return [
        disk
        for name, spec in claims
        for disk in (
            {
                "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
                "spec": {
                    "capacity": spec["resources"]["requests"], "accessModes": spec["accessModes"],
                    "hostPath": {"path": f"/{name}"}, "claimRef": {"name": name, "namespace": NAMESPACE},
                },
            },
            {
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, **bound},
                "spec": spec | {"volumeName": name},
            },
        )
    ]  # fmt: skip


@contextmanager
def installed_whole(cluster: ControlPlane, folder: Path, secrets: Mapping[str, Sequence[str]]) -> Iterator[None]:
    """Everything of a kustomization, with these Secrets and those of Strimzi's users; every pod runs, or has ended."""
    objects = build(cluster, folder)
    users = {item["metadata"]["name"]: ("user.crt", "user.key") for item in select_kinds(objects, "KafkaUser")}
    manifests = [
        {
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": NAMESPACE},
            "stringData": dict.fromkeys(keys, "x"),
        }
        for name, keys in {**secrets, **users}.items()
    ]  # fmt: skip
    templates = [name for name, _ in list_pod_templates(objects) if not name.startswith("CronJob/")]
    with emptied(cluster):
        apply(cluster, select_kinds(objects, "Namespace"))
        # One of another overlay under the same name can't be changed, and may still be on its way out.
        cluster.run_kubectl("delete", "statefulsets", "-n", NAMESPACE, "--all", "--timeout=60s")
        disks = build_disks(objects)
        apply(cluster, [*manifests, *disks, *(item for item in objects if item["kind"] != "Namespace")])
        try:
            eventually(lambda: count_pods(cluster) >= len(templates), lambda: describe_pods(cluster))
            eventually(lambda: not list_unstarted(cluster), lambda: describe_pods(cluster))
            yield
        finally:
            cluster.run_kubectl("delete", "secrets", "-n", NAMESPACE, "--ignore-not-found", *secrets, *users)
            for disk in disks:
                name = f"{disk['kind'].lower()}/{disk['metadata']['name']}"
                cluster.run_kubectl("delete", name, "-n", NAMESPACE, "--wait=false")


def describe_pods(cluster: ControlPlane) -> str:
    return cluster.run_kubectl("get", "pods", "-n", NAMESPACE, "-o", "wide")


def read_phases(cluster: ControlPlane) -> list[str]:
    template = "-o=jsonpath={range .items[*]}{.status.phase}{'\\n'}{end}"
    return cluster.run_kubectl("get", "pods", "-n", NAMESPACE, template).split()


def count_pods(cluster: ControlPlane) -> int:
    return len(read_phases(cluster))


def list_unstarted(cluster: ControlPlane) -> list[str]:
    return [phase for phase in read_phases(cluster) if phase not in ("Running", "Succeeded")]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_right_installation_of_an_overlay_has_no_finding(cluster: ControlPlane, overlay: str) -> None:
    with installed_whole(cluster, KUSTOMIZE / "overlays" / overlay, SECRETS):
        assert run_doctor(cluster) == (0, [])


def test_a_right_installation_with_operators_has_no_finding(cluster: ControlPlane, tmp_path: Path) -> None:
    folder = combine(tmp_path / "operated", KUSTOMIZE / "overlays/production-scheduler", OPERATED)
    with installed_whole(cluster, folder, OF_OPERATORS):
        assert run_doctor(cluster) == (0, [])


def run_doctor(cluster: ControlPlane, *flags: str) -> tuple[int, list[dict[str, Any]]]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SCHEDULERLOG_")}
    command = [sys.executable, "-m", "cli.doctor", "--kubeconfig", str(cluster.kubeconfig), "-o", "json", *flags]
    done = subprocess.run(command, env=clean, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)["findings"]


def test_what_deploy_installs_is_sound(installed: ControlPlane) -> None:
    assert run_doctor(installed) == (0, [])


def test_rights_that_were_taken_away_are_named(installed: ControlPlane) -> None:
    installed.run_kubectl("delete", "clusterrolebinding", "schedulerlog-events")
    code, findings = run_doctor(installed)
    apply(installed, select_kinds(build(installed, KUSTOMIZE / "overlays/scheduler"), "ClusterRoleBinding"))
    assert code == 1
    assert {(finding["check"], finding["about"]) for finding in findings} == {("rights", "schedulerlog-events")}
    assert "may not patch events.events.k8s.io" in {finding["problem"] for finding in findings}
    assert len(findings) == 5


def test_secrets_that_were_not_made_and_pods_that_wait_are_named(installed: ControlPlane) -> None:
    """A step of docs/deploy.md that was left out, each found by what the pods of that overlay name."""
    apply(installed, select_kinds(build(installed, KUSTOMIZE / "overlays/production"), "ConfigMap", "Deployment"))
    secrets = "-n", "schedulerlog", "secret"

    def list_missing() -> dict[str, str]:
        _, findings = run_doctor(installed)
        return {fault["about"]: fault["problem"] for fault in findings if fault["about"].startswith("Secret ")}

    pods = ("-n", "schedulerlog", "get", "pods", "-o", "name")
    eventually(lambda: len(installed.run_kubectl(*pods).split()) >= 9, lambda: installed.run_kubectl(*pods))
    problems = list_missing()
    assert {*problems} == {f"Secret schedulerlog-{name}" for name in ("api-tls", "kafka", "opensearch")}
    assert all(problem.startswith("is missing; schedulerlog-") for problem in problems.values())
    try:
        literals = "--from-literal=ca.crt=x", "--from-literal=cert.pem=x", "--from-literal=tls.key=x"
        installed.run_kubectl("create", *secrets, "generic", "schedulerlog-kafka", *literals)
        assert list_missing()["Secret schedulerlog-kafka"] == "has no tls.crt, but ca.crt, cert.pem, tls.key"
    finally:
        installed.run_kubectl("delete", *secrets, "schedulerlog-kafka")
        installed.run_kubectl("delete", "-n", "schedulerlog", "deployments", "--all", "--wait=false")


def test_settings_of_kube_scheduler_and_hami_are_looked_at(installed: ControlPlane) -> None:
    configuration = yaml.safe_load((KUSTOMIZE / "components/scheduler/kube-scheduler.yaml").read_text())
    configuration["percentageOfNodesToScore"] = 5
    labels = {"app.kubernetes.io/component": "hami-scheduler"}
    container = {
        "name": "vgpu-scheduler-extender",
        "image": "projecthami/hami:v2.10.0",
        "command": ["scheduler", "-v=2"],
    }
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    metadata = {"name": "hami-scheduler", "namespace": "kube-system", "labels": labels}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    with installed.open_client() as client:
        maps, deployments = (
            "/api/v1/namespaces/kube-system/configmaps",
            "/apis/apps/v1/namespaces/kube-system/deployments",
        )
        create(client, maps, {"metadata": {"name": "hami-scheduler"}, "data": {"c": yaml.safe_dump(configuration)}})
        create(client, deployments, {"metadata": metadata, "spec": spec})
        try:
            code, findings = run_doctor(installed)
        finally:
            client.delete(f"{maps}/hami-scheduler")
            client.delete(f"{deployments}/hami-scheduler")
    assert code == 1
    assert {(finding["check"], finding["about"]) for finding in findings} == {
        ("kube-scheduler", "kube-system/hami-scheduler c"), ("hami", "kube-system/hami-scheduler"), ("hami", "webhook"),
    }  # fmt: skip


def test_a_namespace_without_an_installation_is_named(installed: ControlPlane) -> None:
    code, findings = run_doctor(installed, "--namespace", "nowhere")
    assert (code, [finding["about"] for finding in findings]) == (1, ["namespace nowhere"])
