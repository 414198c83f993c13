"""Our scheduler is put into HAMi's Deployment, and taken out again: what is there then is what was there before."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from cli.command import app
from dev.embedded.control_plane import ControlPlane
from schemas.json_types import Json
from tests.support.control_plane.deployed import KUSTOMIZE, build
from tests.support.control_plane.objects import create

FILES = KUSTOMIZE / "components/hami"
NAME = "hami-scheduler"
ARGUMENTS = [
    "--http_bind=0.0.0.0:443", "--cert_file=/tls/tls.crt", "--key_file=/tls/tls.key", "--scheduler-name=hami-scheduler",
    "--metrics-bind-address=:9395", "--node-scheduler-policy=binpack", "--gpu-scheduler-policy=spread",
    "--force-overwrite-default-scheduler=true", "--device-config-file=/device-config.yaml", "--leader-elect=true",
    "--leader-elect-resource-name=hami-scheduler", "--leader-elect-resource-namespace=kube-system", "-v=4",
]  # fmt: skip
"""Arguments as HAMi's chart v2.10 writes them with its default values."""


def build_mount(name: str, path: str) -> Json:
    return {"name": name, "mountPath": path}


def build_hami_objects(namespace: str) -> tuple[Json, Json]:
    """Build Deployment and Service, as far as the patches touch them."""
    labels = {"app.kubernetes.io/component": NAME}
    variable = {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    extender = {
        "name": "vgpu-scheduler-extender", "image": "projecthami/hami:v2.10.0", "command": ["scheduler", *ARGUMENTS],
        "env": [variable], "resources": {"requests": {"cpu": "500m"}},
        "volumeMounts": [build_mount("device-config", "/device-config.yaml"), build_mount("tls", "/tls")],
    }  # fmt: skip
    kube_scheduler = {"name": "kube-scheduler", "image": "kube-scheduler:v1.36.3", "command": ["kube-scheduler"]}
    volumes = [
        {"name": "tls", "secret": {"secretName": "hami-scheduler-tls"}},
        {"name": "device-config", "configMap": {"name": "hami-scheduler-device"}},
    ]
    template = {
        "metadata": {"labels": labels, "annotations": {"checksum/hami-scheduler-config": "abc"}},
        "spec": {"containers": [kube_scheduler, extender], "volumes": volumes},
    }
    metadata = {"name": NAME, "namespace": namespace}
    deployment = {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }  # fmt: skip
    service = {
        "apiVersion": "v1", "kind": "Service", "metadata": metadata,
        "spec": {"selector": labels | {"hami.io/scheduler-role": "leader"}, "ports": [{"port": 443}]},
    }  # fmt: skip
    return deployment, service


@pytest.fixture
def hami(control_plane: ControlPlane, namespace: str) -> str:
    """The namespace of a HAMi that is installed."""
    deployment, service = build_hami_objects(namespace)
    with control_plane.open_client() as client:
        create(client, f"/apis/apps/v1/namespaces/{namespace}/deployments", deployment)
        create(client, f"/api/v1/namespaces/{namespace}/services", service)
    return namespace


def patch(cluster: ControlPlane, namespace: str, kind: str, file: str) -> None:
    """Patch an object as docs/switching-from-hami.md has it."""
    path = str(FILES / f"{kind}-{file}.yaml")
    cluster.run_kubectl("patch", kind, NAME, "-n", namespace, "--type=json", f"--patch-file={path}")


def patch_disk(cluster: ControlPlane, namespace: str, file: str) -> None:
    path = str(FILES / f"disk-{file}.yaml")
    cluster.run_kubectl("patch", "deployment", NAME, "-n", namespace, f"--patch-file={path}")


def read_specs(cluster: ControlPlane, namespace: str) -> tuple[Json, Json]:
    with cluster.open_client() as client:
        deployment = client.get(f"/apis/apps/v1/namespaces/{namespace}/deployments/{NAME}").json()
        service = client.get(f"/api/v1/namespaces/{namespace}/services/{NAME}").json()
    return deployment["spec"], service["spec"]


def test_what_is_put_in_and_taken_out_again_leaves_hami_as_it_was(control_plane: ControlPlane, hami: str) -> None:
    before = read_specs(control_plane, hami)
    for kind in ("deployment", "service"):
        patch(control_plane, hami, kind, "in")
    patch_disk(control_plane, hami, "in")
    assert read_specs(control_plane, hami) != before
    patch_disk(control_plane, hami, "out")
    for kind in ("deployment", "service"):
        patch(control_plane, hami, kind, "out")
    assert read_specs(control_plane, hami) == before


def test_ours_runs_with_hamis_own_arguments(control_plane: ControlPlane, hami: str) -> None:
    for kind in ("deployment", "service"):
        patch(control_plane, hami, kind, "in")
    deployment, service = read_specs(control_plane, hami)
    kube_scheduler, extender = deployment["template"]["spec"]["containers"]
    assert kube_scheduler["image"] == "kube-scheduler:v1.36.3"
    assert extender["image"].startswith("ghcr.io/schedulerlog/schedulerlog:")
    program, package, command, spool, callers, *arguments = extender["command"]
    assert (program, package, command) == ("schedulerlog", "scheduler", "serve")
    assert (callers, arguments) == ("--loopback-callers-only", ARGUMENTS)
    folder = spool.removeprefix("--spool=").rsplit("/", 1)[0]
    assert {"name": "schedulerlog-spool", "mountPath": folder} in extender["volumeMounts"]
    assert service["selector"] == {"app.kubernetes.io/component": NAME}
    # Every one of them is understood: the last word asks for help, and is the one that is answered.
    with pytest.raises(SystemExit) as ended:
        get_command(app).main([package, command, spool, callers, *arguments, "--help"], prog_name=program)
    assert ended.value.code == 0


def test_the_disk_of_the_spool_is_requested_beside_what_hami_requests(control_plane: ControlPlane, hami: str) -> None:
    patch(control_plane, hami, "deployment", "in")
    patch_disk(control_plane, hami, "in")
    spec = read_specs(control_plane, hami)[0]["template"]["spec"]
    (spool,) = [volume for volume in spec["volumes"] if volume["name"] == "schedulerlog-spool"]
    kube_scheduler, extender = spec["containers"]
    requests = extender["resources"]["requests"]
    assert requests.pop("ephemeral-storage") == "5184Mi"
    assert (requests, kube_scheduler["resources"]) == ({"cpu": "500m"}, {})
    # 5184 MiB are the 5 GiB of the spool and the 50 MiB of logs that the kubelet keeps of a container, rounded up.
    assert spool["emptyDir"] == {"sizeLimit": "5Gi"}


def test_a_deployment_of_another_form_is_left_alone(control_plane: ControlPlane, hami: str) -> None:
    with control_plane.open_client() as client:
        path = f"/apis/apps/v1/namespaces/{hami}/deployments/{NAME}"
        change: list[Any] = [{"op": "remove", "path": "/spec/template/spec/containers/0"}]
        client.patch(path, json=change, headers={"Content-Type": "application/json-patch+json"}).raise_for_status()
    before = read_specs(control_plane, hami)
    with pytest.raises(subprocess.CalledProcessError):
        patch(control_plane, hami, "deployment", "in")
    assert read_specs(control_plane, hami) == before


def test_the_component_does_the_same_to_a_rendered_chart(
    control_plane: ControlPlane, hami: str, tmp_path: Path
) -> None:
    deployment, service = build_hami_objects(hami)
    (tmp_path / "hami.yaml").write_text(yaml.safe_dump_all([deployment, service]))
    component = os.path.relpath(FILES, tmp_path)
    (tmp_path / "kustomization.yaml").write_text(
        yaml.safe_dump({"resources": ["hami.yaml"], "components": [component]})
    )
    objects = {(item["kind"], item["metadata"]["name"]): item for item in build(control_plane, tmp_path)}
    for kind in ("deployment", "service"):
        patch(control_plane, hami, kind, "in")
    there, selected = read_specs(control_plane, hami)
    rendered = objects["Deployment", NAME]["spec"]["template"]["spec"]["containers"][1]
    assert rendered["command"] == there["template"]["spec"]["containers"][1]["command"]
    assert rendered["resources"] == {"requests": {"cpu": "500m", "ephemeral-storage": "5184Mi"}}
    assert objects["Service", NAME]["spec"]["selector"] == selected["selector"]
    assert ("ClusterRole", "schedulerlog-in-hami") in objects
