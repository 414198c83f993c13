"""Rights of the scheduler: it needs what it says that it needs; a token that is replaced is taken up."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import scheduler.cluster.kubernetes
from dev.embedded.control_plane import ControlPlane
from runtime.http.certificate_authority import Authority
from runtime.kubernetes.client import Client
from runtime.kubernetes.credentials import ApiCredentials, from_kubeconfig
from runtime.kubernetes.errors import KubeApiError
from runtime.kubernetes.lease import LeaseTimings
from runtime.kubernetes.resources import NODES
from schemas.json_types import Json
from tests.support.control_plane.extender_process import Extender
from tests.support.control_plane.objects import ALLOCATED, LOCK, a_gpu_node, a_gpu_pod, create, created_nodes
from tests.support.control_plane.service_account import a_kubeconfig, granted, service_account
from tests.support.control_plane.webhook import registered_webhook
from tests.support.harness.scheduler_on_fake_api import LEASE, OnApi
from tests.support.waiting import eventually, eventually_async

NAME = "hami-without-quotas"
PATIENT = LeaseTimings(60, 50, 0.2)
"""A machine that stands still for seconds in the middle of the test does not cost the lead."""


def read_documented_rules() -> list[Json]:
    """Read the rules in the docstring of `scheduler.cluster.kubernetes`."""
    rows = [
        line.split(maxsplit=2)
        for line in (scheduler.cluster.kubernetes.__doc__ or "").splitlines()
        if line[:4] == "    "
    ]
    return [
        {"apiGroups": [group.strip('"')], "resources": [resource], "verbs": verbs.split("(")[0].split()}
        for group, resource, verbs in rows
    ]


@pytest.fixture
def kubeconfig(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Path]:
    """Kubeconfig of a service account that is allowed only what the docstring says; its token stands in a file."""
    with service_account(control_plane, namespace, read_documented_rules(), tmp_path):
        yield a_kubeconfig(tmp_path, control_plane)


async def test_a_pod_is_placed_with_the_rights_that_are_documented_and_in_four_calls(
    control_plane: ControlPlane, namespace: str, kubeconfig: Path, tmp_path: Path
) -> None:
    node, calls = f"{namespace}-node", list[tuple[str, str]]()
    client = Client(await ApiCredentials.open(from_kubeconfig(kubeconfig)), count=lambda *call: calls.append(call))
    with control_plane.open_client() as admin, created_nodes(control_plane, [a_gpu_node(node)]):
        pod = create(admin, f"/api/v1/namespaces/{namespace}/pods", a_gpu_pod("pod1", "nobody", gpumem=3000))
        on_api = OnApi(tmp_path, client, "me", PATIENT)
        running = asyncio.create_task(on_api.cluster.run())
        try:
            await eventually_async(lambda: running.done() or not on_api.cluster.find_problem())
            assert not on_api.cluster.find_problem()
            calls.clear()
            assert (await on_api.filter(pod, (node,)))["NodeNames"] == [node]
            assert await on_api.bind(pod, node) == ""
            done = [call for call in calls if call[0] in ("get", "patch", "create")]
            assert done == [("patch", "200")] * 3 + [("create", "201")]
            bound_pod = admin.get(f"/api/v1/namespaces/{namespace}/pods/pod1").json()
            assert bound_pod["spec"]["nodeName"] == node
            assert bound_pod["metadata"]["annotations"][ALLOCATED].startswith(f"GPU-{node}-")
            locked = admin.get(f"/api/v1/nodes/{node}").json()["metadata"]["annotations"][LOCK]
            assert locked.endswith(f",{namespace},pod1")
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await on_api.cluster.close()
            on_api.spool.close()
        held = admin.get(f"/apis/coordination.k8s.io/v1/namespaces/{LEASE.namespace}/leases/{LEASE.name}").json()
        assert held["spec"]["holderIdentity"] == "", "given back at the end"


def test_l7_until_quotas_are_listed_no_pod_is_let_past_them(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    """An account without the right to list them: the API server refuses pods and says why, until it has the right."""
    rules = read_documented_rules()
    of_quotas = [rule for rule in rules if rule["resources"] == ["resourcequotas"]]
    assert of_quotas
    others = [rule for rule in rules if rule not in of_quotas]
    pod, pods = a_gpu_pod("pod1", NAME, gpumem=3000), f"/api/v1/namespaces/{namespace}/pods?dryRun=All"
    del pod["spec"]["schedulerName"]
    folder = tmp_path / "account"
    with service_account(control_plane, namespace, others, folder) as account, control_plane.open_client() as client:
        kubeconfig, authority = a_kubeconfig(folder, control_plane), Authority.create("the tests' authority")
        extender = Extender(tmp_path / "extender", kubeconfig, authority, NAME, "--no-publish")
        extender.start(until_ready=False)
        try:
            with registered_webhook(control_plane, extender, namespace):
                # Before it listens the API server refuses too, in other words.
                eventually(lambda: "resourcequotas" in _get_error(client.post(pods, json=pod)), extender.log.read_text)
                with granted(control_plane, namespace, account, of_quotas):
                    eventually(lambda: client.post(pods, json=pod).is_success, extender.log.read_text)
                    assert client.post(pods, json=pod).json()["spec"]["schedulerName"] == NAME
        finally:
            extender.stop()


def _get_error(answer: httpx.Response) -> str:
    return str(answer.json()["message"]) if answer.is_error else ""


async def test_a_token_that_was_replaced_in_its_file_is_taken_when_the_old_one_is_refused(kubeconfig: Path) -> None:
    token = kubeconfig.parent / "token"
    good = token.read_text()
    token.write_text("old")
    client = Client(await ApiCredentials.open(from_kubeconfig(kubeconfig)))
    try:
        with pytest.raises(KubeApiError) as refused:
            await client.get_page(NODES.build_collection_path())
        assert refused.value.status == httpx.codes.UNAUTHORIZED
        token.write_text(good)
        assert (await client.get_page(NODES.build_collection_path()))["kind"] == "NodeList"
    finally:
        await client.close()
