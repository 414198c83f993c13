"""`schedulerlog doctor` against the real API server: what deploy/ installs is sound, and one fault each is named."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from dev.embedded.control_plane import ControlPlane
from tests.support.control_plane.deployed import KUSTOMIZE, apply, build, emptied, select_kinds
from tests.support.control_plane.objects import create
from tests.support.waiting import eventually

KINDS = ("Namespace", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "ConfigMap")


@pytest.fixture(scope="module")
def installed(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    with emptied(control_plane):
        apply(control_plane, select_kinds(build(control_plane, KUSTOMIZE / "overlays/scheduler"), *KINDS))
        yield control_plane


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
