"""M8: with the component device-annotations a tenant reserves no device by an annotation, on a real API server."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from dev.embedded.control_plane import ControlPlane
from schemas.json_types import Json
from tests.support.control_plane.admission_policies import connect_account, policy_in
from tests.support.control_plane.service_account import service_account
from tests.support.waiting import eventually

RULES = [{"apiGroups": [""], "resources": ["pods", "pods/status", "pods/binding"], "verbs": ["create", "patch", "get"]}]
HELD = {"hami.io/vgpu-devices-allocated": "GPU-1,NVIDIA,2147483647,100:;", "hami.io/vgpu-node": "node1"}
MERGE = {"Content-Type": "application/merge-patch+json"}


@pytest.fixture
def pods(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[str]:
    """The path of the pods of a namespace in which the policy is in force."""
    with policy_in(control_plane, "device-annotations", namespace, tmp_path):
        yield f"/api/v1/namespaces/{namespace}/pods"


def a_pod(name: str, annotations: Json) -> Json:
    spec = {"containers": [{"name": "main", "image": "busybox"}], "schedulerName": "nobody"}
    return {"metadata": {"name": name, "annotations": annotations}, "spec": spec}


def annotate(client: httpx.Client, path: str, annotations: Json) -> int:
    return client.patch(path, json={"metadata": {"annotations": annotations}}, headers=MERGE).status_code


def test_m8_a_tenant_writes_no_annotation_that_holds_devices_and_takes_none_away(
    control_plane: ControlPlane, namespace: str, pods: str, tmp_path: Path
) -> None:
    with service_account(control_plane, namespace, RULES, tmp_path), connect_account(control_plane, tmp_path) as tenant:
        # The API server notices a new policy after a moment.
        eventually(
            lambda: tenant.post(pods, json=a_pod("forged", HELD), params={"dryRun": "All"}).status_code == 403,
            lambda: "",
        )
        for name in ("hami.io/dcu-devices-allocated", "hami.io/kunlun-allocated", "hami.io/bind-phase"):
            assert tenant.post(pods, json=a_pod("forged", {name: "x"})).status_code == 403
        annotations = {"hami.io/gpu-scheduler-policy": "spread", "nvidia.com/use-gputype": "A100"}
        assert tenant.post(pods, json=a_pod("own", annotations)).status_code == 201
        assert annotate(tenant, f"{pods}/own", HELD) == 403
        assert annotate(tenant, f"{pods}/own/status", HELD) == 403
        assert annotate(tenant, f"{pods}/own", {"team": "a"}) == 200
        binding = {"metadata": {"name": "own", "annotations": HELD}, "target": {"kind": "Node", "name": "node1"}}
        assert tenant.post(f"{pods}/own/binding", json=binding).status_code == 403
        with control_plane.open_client() as administrator:
            assert annotate(administrator, f"{pods}/own", HELD) == 200
        # What the scheduler wrote remains as it wrote it; everything else is the tenant's as before.
        assert annotate(tenant, f"{pods}/own", {"hami.io/vgpu-node": None}) == 403
        assert annotate(tenant, f"{pods}/own", HELD | {"hami.io/vgpu-node": "node2"}) == 403
        assert annotate(tenant, f"{pods}/own", HELD | {"team": "b"}) == 200


def test_m8_accounts_of_the_schedulers_namespaces_write_them(
    control_plane: ControlPlane, pods: str, tmp_path: Path
) -> None:
    with (
        service_account(control_plane, "kube-system", RULES, tmp_path),
        connect_account(control_plane, tmp_path) as account,
    ):
        assert account.post(pods, json=a_pod("placed", HELD)).status_code == 201
