"""The aggregated API as deploy/kustomize installs it, behind a real API server: kubectl, Roles, requests past it."""

import asyncio
import json
import os
import ssl
import subprocess
import sys
import uuid
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import yaml
from typer.testing import CliRunner, Result

from api.own_certificate import write_secret
from cli.terminal.kubectl import app
from dev.embedded.control_plane import ControlPlane
from dev.embedded.control_plane.folder import link_kubectl
from dev.embedded.ports import KUBERNETES_PORTS, find_free_port
from runtime.http.certificate_authority import CLIENT, Authority
from runtime.kubernetes.credentials import choose_loader
from schemas.json_types import Json
from tests.support.backends import Addresses
from tests.support.builders.node_states import a_node_state
from tests.support.control_plane.callers import Callers
from tests.support.control_plane.deployed import KUSTOMIZE, NAMESPACE, apply, build, combine, emptied, select_kinds
from tests.support.control_plane.objects import created_namespace, created_nodes
from tests.support.control_plane.rights import Right, list_granted, read_requests
from tests.support.control_plane.service_account import a_kubeconfig, write_token
from tests.support.harness.api_process import serving
from tests.support.harness.index_filling import NOW, Filling, an_attempt
from tests.support.waiting import eventually

GROUP = "/apis/schedulerlog.io/v1alpha1"
API_SERVICE = "v1alpha1.schedulerlog.io"
RIGHTS = ("Namespace", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
AUDIENCE = "https://kubernetes.default.svc"
"""Audience of the tokens with which callers come to the API server itself."""


class World(NamedTuple):
    cluster: ControlPlane
    objects: list[Json]
    client: httpx.Client
    """Client of the API itself, past the API server."""
    tokens: dict[str, str]
    team_a: str
    team_b: str
    folder: Path

    def build_path(self, path: str) -> str:
        return GROUP + path.format(a=self.team_a, b=self.team_b)

    def get(self, caller: str, path: str) -> Any:
        """Get an answer as ``kubectl get --raw`` prints it."""
        return json.loads(
            self.cluster.run_kubectl("get", "--raw", self.build_path(path), "--token", self.tokens[caller])
        )

    def get_refusal(self, caller: str, path: str) -> str:
        """Return what kubectl prints in place of an answer."""
        with pytest.raises(subprocess.CalledProcessError) as caught:
            self.get(caller, path)
        return str(caught.value.stderr)


@pytest.fixture(scope="module")
def world(
    control_plane: ControlPlane, backends: Addresses, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("aggregated")
    mark = uuid.uuid4().hex[:8]
    team_a, team_b = f"team-a-{mark}", f"team-b-{mark}"
    filling = Filling(backends.bootstrap_servers, backends.opensearch_url)
    filling.provision()
    pods = (f"{team_a}/train-0", f"{team_a}/train-1", f"{team_b}/secret-model")
    # An attempt's id is made from the pod's name and the time, and other tests have pods of these names.
    started_at = NOW - timedelta(minutes=7)
    filling.index(*(an_attempt(pod, started_at=started_at).model_copy(update={"cluster": mark}) for pod in pods))
    filling.publish_states(a_node_state("node1", cluster=mark, observed_at=started_at))
    objects = build(control_plane, combine(folder / "all", KUSTOMIZE / "base", ["aggregated-api"]))
    port = find_free_port(KUBERNETES_PORTS)
    with ExitStack() as stack:
        stack.enter_context(emptied(control_plane))
        apply(control_plane, select_kinds(objects, *RIGHTS))
        # While an APIService has no server, no namespace can be deleted to its end: first of all it has to go.
        stack.callback(control_plane.run_kubectl, "delete", "apiservice", API_SERVICE, "--ignore-not-found")
        stack.callback(control_plane.run_kubectl, "delete", "secret", "-n", NAMESPACE, "schedulerlog-api-tls")
        apply(control_plane, [to_this_machine(item, port) for item in select_kinds(objects, "APIService", "Service")])
        certificate = make_certificate(control_plane, objects, folder)
        write_token(control_plane, NAMESPACE, "schedulerlog-api", folder / "api")
        settings = read_settings(objects) | {
            "SCHEDULERLOG_API_CERT_FILE": str(certificate / "tls.crt"),
            "SCHEDULERLOG_API_KEY_FILE": str(certificate / "tls.key"),
            "SCHEDULERLOG_API_LISTEN": str(port),
            "SCHEDULERLOG_KUBECONFIG": str(a_kubeconfig(folder / "api", control_plane)),
            "SCHEDULERLOG_CLUSTER_NAME": mark,
        }
        for name in (team_a, team_b):
            stack.enter_context(created_namespace(control_plane, name))
        callers = Callers(control_plane, team_a)
        stack.callback(callers.remove)
        tokens = create_callers(callers, team_a)
        api = stack.enter_context(
            serving(backends.bootstrap_servers, backends.opensearch_url, certificate / "ca.crt", **settings)
        )
        control_plane.run_kubectl("wait", "--for=condition=Available", f"apiservice/{API_SERVICE}", "--timeout=60s")
        yield World(control_plane, objects, api.client, tokens, team_a, team_b, folder)
        # Before the API ends.
        control_plane.run_kubectl("delete", "apiservice", API_SERVICE)


def to_this_machine(manifest: Json, port: int) -> Json:
    """Return the object with the API's address of this test: there is no network of pods."""
    if manifest["kind"] == "APIService":
        return manifest | {"spec": manifest["spec"] | {"service": manifest["spec"]["service"] | {"port": port}}}
    return manifest | {"spec": {"type": "ExternalName", "externalName": "localhost"}}


def read_settings(objects: list[Json]) -> dict[str, str]:
    """Read those of the ConfigMap about the API."""
    (settings,) = [config_map["data"] for config_map in select_kinds(objects, "ConfigMap")]
    return {name: value for name, value in settings.items() if name.startswith("SCHEDULERLOG_API_")}


def make_certificate(cluster: ControlPlane, objects: list[Json], folder: Path) -> Path:
    """Make the files of the Secret twice by the Job's command, when they are there, and renew them a year later."""
    (job,) = [item for item in select_kinds(objects, "Job") if item["metadata"]["name"] == "schedulerlog-certificate"]
    # As the kubelet writes the variables of a container into its arguments.
    words = job["spec"]["template"]["spec"]["containers"][0]["args"]
    arguments = [word.replace("$(POD_NAMESPACE)", NAMESPACE) for word in words]
    write_token(cluster, NAMESPACE, "schedulerlog-certificate", folder / "certificate")
    kubeconfig = a_kubeconfig(folder / "certificate", cluster)
    command = [sys.executable, "-m", *arguments, "--kubeconfig", str(kubeconfig)]
    lines = [subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout for _ in range(2)]
    assert [("made for" in line, "is there already" in line) for line in lines] == [(True, False), (False, True)]
    service = next(word for word in arguments if word.startswith("--api-service=")).partition("=")[2]
    later = datetime.now(UTC) + timedelta(days=365)
    names = lines[0].strip().partition("made for ")[2].split(", ")
    load = choose_loader(kubeconfig, None)
    assert asyncio.run(write_secret(load, NAMESPACE, "schedulerlog-api-tls", names, service, later)) == "renewed"
    with cluster.open_client() as client:
        secret = client.get(f"/api/v1/namespaces/{NAMESPACE}/secrets/schedulerlog-api-tls").json()
    for name, content in secret["data"].items():
        (folder / "certificate" / name).write_bytes(b64decode(content))
    return folder / "certificate"


def create_callers(callers: Callers, team_a: str) -> dict[str, str]:
    """Create callers with `view`, `edit`, our role for all namespaces, and nothing; return the token of each."""
    names = ("viewer", "editor", "operator", "stranger")
    for name in names:
        callers.create_account(name)
    callers.bind("viewer", "view", team_a)
    callers.bind("editor", "edit", team_a)
    callers.bind("operator", "schedulerlog-cluster-view")
    return {name: callers.build_header(name, AUDIENCE)["Authorization"].removeprefix("Bearer ") for name in names}


POD = "/namespaces/{a}/pods/train-0/schedulerlog"
OTHER = "/namespaces/{b}/pods/secret-model/schedulerlog"


def test_who_may_view_a_namespace_reads_its_pods_with_kubectl(world: World) -> None:
    # The role is aggregated by a controller.
    eventually(lambda: world.get("viewer", POD)["status"] == "failed", "view does not have the right")
    assert world.get("editor", POD)["status"] == "failed"
    assert world.get("viewer", POD + "/history")["episodes"]
    assert world.get("viewer", POD + "/findings")["items"] == []
    answer = world.get("viewer", "/namespaces/{a}/schedulerlogs?limit=1")
    assert (answer["total"], [item["namespace"] for item in answer["items"]]) == (2, [world.team_a])
    remainder = world.get("viewer", "/namespaces/{a}/schedulerlogs?limit=1&continue=" + answer["continue"])
    assert remainder["items"][0]["name"] != answer["items"][0]["name"]
    # Links lead to the aggregated API again.
    assert answer["items"][0]["schedulerlog"].startswith(GROUP)


@pytest.mark.parametrize(
    ("caller", "path"),
    [
        ("viewer", OTHER),
        ("viewer", "/namespaces/{b}/pods/does-not-exist/schedulerlog"),
        ("viewer", "/namespaces/{b}/schedulerlogs"),
        ("viewer", "/schedulerlogs"),
        ("viewer", "/nodes/node1/schedulerlog"),
        ("stranger", POD),
    ],
)
def test_who_may_not_is_refused(world: World, caller: str, path: str) -> None:
    assert "(Forbidden)" in world.get_refusal(caller, path)


def test_errors_are_kubectls_own(world: World) -> None:
    unknown = world.get_refusal("viewer", "/namespaces/{a}/pods/does-not-exist/schedulerlog")
    assert "Error from server (NotFound)" in unknown
    assert "(BadRequest)" in world.get_refusal("viewer", POD + "?limit=x")
    assert "(BadRequest)" in world.get_refusal("viewer", "/namespaces/{a}/schedulerlogs?namespace={b}")


def test_who_looks_after_the_cluster_reads_everything(world: World) -> None:
    assert world.get("operator", OTHER)["status"] == "failed"
    assert world.get("operator", "/schedulerlogs")["total"] == 3


def test_who_may_view_a_namespace_watches_its_pods_with_kubectl(world: World) -> None:
    def watch(path: str) -> list[Json]:
        raw = world.build_path(path + "?watch=true&timeoutSeconds=1&allowWatchBookmarks=true")
        printed = world.cluster.run_kubectl("get", "--raw", raw, "--token", world.tokens["viewer"])
        return [json.loads(line) for line in printed.splitlines()]

    pod = watch("/namespaces/{a}/pods/train-0/schedulerlog")
    assert [event["type"] for event in pod] == ["ADDED", "BOOKMARK", "BOOKMARK"]
    assert pod[0]["object"]["metadata"]["name"] == "train-0"
    assert [event["type"] for event in watch("/namespaces/{a}/pending")] == ["BOOKMARK", "BOOKMARK"]
    assert "Forbidden" in world.get_refusal("viewer", "/namespaces/{b}/schedulerlogs?watch=true")
    assert "a watch does not have it" in world.get_refusal("viewer", "/namespaces/{a}/pending?watch=true&limit=1")


def test_who_may_view_a_namespace_asks_with_kubectl_where_a_pod_would_go(world: World) -> None:
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4000"}
    containers = [{"name": "main", "image": "none", "resources": {"limits": limits}}]

    def simulate(caller: str, path: str, namespace: str) -> Json:
        metadata = {"name": "new", "namespace": namespace}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}}
        (file := world.folder / "pod.json").write_text(json.dumps(pod))
        raw = world.build_path(path + "/simulations")
        simulation: Json = json.loads(
            world.cluster.run_kubectl("create", "--raw", raw, "-f", str(file), "--token", world.tokens[caller])
        )
        return simulation

    def fits() -> bool:
        # Until the topic of node states is read.
        with suppress(subprocess.CalledProcessError):
            return bool(simulate("viewer", "/namespaces/{a}", world.team_a)["node"] == "node1")
        return False

    # A node whose devices are recorded and that the cluster does not have any more takes no pod.
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    node = {
        "metadata": {"name": "node1", "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "status": {"allocatable": amounts, "capacity": amounts},
    }
    with created_nodes(world.cluster, [node]):
        eventually(fits, "the pod does not fit node1")
        check_simulations(world, simulate)


def check_simulations(world: World, simulate: Callable[[str, str, str], Json]) -> None:
    """Check the answer about a pod that fits, and the refusals of callers and namespaces."""
    answer = simulate("viewer", "/namespaces/{a}", world.team_a)
    assert answer["schedulerlog"]["filter"]["status"] == "passed"
    assert answer["suggestions"]["state"] == "fits"
    refused = (
        ("viewer", "/namespaces/{b}", world.team_b, "Forbidden"),
        ("viewer", "/namespaces/{a}", world.team_b, "BadRequest"),
        ("stranger", "/namespaces/{a}", world.team_a, "Forbidden"),
    )
    for caller, path, namespace, word in refused:
        with pytest.raises(subprocess.CalledProcessError) as caught:
            simulate(caller, path, namespace)
        assert word in caught.value.stderr
    unknown = world.get("viewer", "/namespaces/{a}/suggestions")
    assert (unknown["namespace"], unknown["items"]) == (world.team_a, [])


def test_impersonation_is_kubernetes_own(world: World) -> None:
    """The administrator asks as the viewer would; who may not impersonate gains nothing by it."""
    viewer = f"system:serviceaccount:{world.team_a}:viewer"
    as_viewer = ("get", "--raw", world.build_path(OTHER), "--as", viewer)
    with pytest.raises(subprocess.CalledProcessError, match="Forbidden") as caught:
        world.cluster.run_kubectl(*as_viewer)
    assert viewer in caught.value.stderr
    assert world.cluster.run_kubectl("get", "--raw", world.build_path(POD), "--as", viewer)


def test_kubectl_lists_what_there_is(world: World) -> None:
    def list_resources() -> str:
        return world.cluster.run_kubectl("api-resources", "--api-group=schedulerlog.io", "-o", "name")

    eventually(lambda: "schedulerlogs.schedulerlog.io" in list_resources(), list_resources)


def test_no_caller_is_known_by_headers_without_the_api_servers_certificate(world: World) -> None:
    admin = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}
    for path in (POD, OTHER):
        assert world.client.get(world.build_path(path), headers=admin).status_code == 401
    token = {"Authorization": f"Bearer {world.tokens['viewer']}"}
    # Of another audience, and no better with the headers.
    assert world.client.get(world.build_path(POD), headers=token | admin).status_code == 401
    forged = Authority.create("front-proxy-ca").issue("front-proxy-client", usages=CLIENT)
    assert get_status(world, forged, admin) == 0
    files = world.cluster.credentials
    genuine = files.front_proxy_certificate.read_bytes(), files.front_proxy_key.read_bytes()
    assert get_status(world, genuine, admin) == 200
    assert get_status(world, genuine, {"X-Remote-User": "somebody"}) == 403
    assert get_status(world, genuine, {}) == 401


def get_status(world: World, certificate: tuple[bytes, bytes], headers: dict[str, str]) -> int:
    """Get the status of the other team's pod, with a client certificate; 0 where the handshake is refused."""
    pair = world.folder / "shown.crt", world.folder / "shown.key"
    for file, content in zip(pair, certificate, strict=True):
        file.write_bytes(content)
    context = ssl.create_default_context(cafile=world.folder / "certificate/ca.crt")
    context.load_cert_chain(*pair)
    with httpx.Client(base_url=world.client.base_url, verify=context, trust_env=False, timeout=30) as client:
        try:
            return client.get(world.build_path(OTHER), headers=headers).status_code
        except httpx.TransportError:
            return 0


@pytest.fixture(scope="module")
def kubectl(world: World) -> Callable[..., Result]:
    """``kubectl schedulerlog`` with the credentials of a caller, and its namespace."""
    link_kubectl(world.folder, world.cluster.binary)

    def run(caller: str, *words: str) -> Result:
        write_token(world.cluster, world.team_a, caller, folder := world.folder / caller)
        kubeconfig = yaml.safe_load(a_kubeconfig(folder, world.cluster).read_text())
        kubeconfig["contexts"][0]["context"]["namespace"] = world.team_a
        (folder / "kubeconfig").write_text(yaml.safe_dump(kubeconfig))
        path = f"{world.folder / 'bin'}:{os.environ['PATH']}"
        return CliRunner().invoke(app, words, env={"KUBECONFIG": str(folder / "kubeconfig"), "PATH": path})

    return run


def test_kubectl_schedulerlog_asks_with_kubectls_credentials(world: World, kubectl: Callable[..., Result]) -> None:
    # Its attempts are recorded; no object of its name is in the cluster. The role is aggregated by a controller.
    sentence = f"Pod {world.team_a}/train-0 does not exist."
    eventually(lambda: kubectl("viewer", "why", "train-0").stdout.startswith(sentence), "the diagnosis is not answered")
    listed = kubectl("viewer", "list", "-o", "name")
    assert sorted(listed.stdout.split()) == ["pod/train-0", "pod/train-1"]
    assert kubectl("viewer", "history", "train-0", "-o", "json").stdout.startswith("{")
    for words in (["list", "--pending"], ["trends"], ["report"]):
        done = kubectl("viewer", *words)
        assert (done.exit_code, done.stderr) == (0, ""), done.output
        assert kubectl("viewer", *words, "-A").exit_code == 4


def test_a_watch_by_kubectl_ends_when_the_pod_is_placed(
    world: World, kubectl: Callable[..., Result], backends: Addresses
) -> None:
    attempt = an_attempt(f"{world.team_a}/train-2", chosen="node1", bound=True)
    mark = world.team_a.removeprefix("team-a-")
    Filling(backends.bootstrap_servers, backends.opensearch_url).publish(attempt.model_copy(update={"cluster": mark}))
    path = "/namespaces/{a}/pods/train-2/schedulerlog"
    eventually(lambda: world.get("operator", path)["status"] == "succeeded", "the attempt is not on the topic")
    done = kubectl("viewer", "watch", "train-2", "--until-placed")
    assert (done.exit_code, f" {world.team_a}/train-2 placed" in done.stdout) == (0, True), done.output


def test_the_exit_code_of_kubectl_schedulerlog_says_why_there_is_no_answer(
    world: World, kubectl: Callable[..., Result]
) -> None:
    refused = kubectl("viewer", "why", f"{world.team_b}/secret-model")
    assert (refused.exit_code, "is forbidden" in refused.stderr, refused.stdout) == (4, True, ""), refused.output
    assert kubectl("stranger", "list", "-A").exit_code == 4
    unknown = kubectl("viewer", "history", "does-not-exist")
    assert (unknown.exit_code, "is recorded" in unknown.stderr) == (3, True), unknown.output
    assert kubectl("viewer", "why", "train-0", "--context", "nowhere").exit_code == 2


def test_the_exit_code_is_the_same_by_the_apis_own_address(world: World) -> None:
    """With a token for the API, which asks the API server what its owner may read."""
    authority = str(world.folder / "certificate/ca.crt")

    def run_command(caller: str, *words: str) -> tuple[int, str]:
        of_caller = ("create", "token", caller, "--namespace", world.team_a, "--audience", "schedulerlog")
        token = world.cluster.run_kubectl(*of_caller).strip() if caller else ""
        address = {"SCHEDULERLOG_API_URL": str(world.client.base_url), "SCHEDULERLOG_API_CA_FILE": authority}
        done = CliRunner().invoke(app, words, env=address | {"SCHEDULERLOG_API_TOKEN": token})
        assert "Traceback" not in done.output
        return done.exit_code, done.stderr

    ours, others = f"{world.team_a}/train-0", f"{world.team_b}/secret-model"
    assert run_command("viewer", "history", ours) == (0, "")
    code, refusal = run_command("viewer", "why", others)
    assert (code, "may not" in refusal) == (4, True), refusal
    for words in (["why", ours], ["list", "-n", world.team_a], ["trends", "-A"], ["node", "node1"]):
        assert run_command("stranger", *words)[0] == 4, words
    assert run_command("", "why", ours)[0] == 4
    assert run_command("viewer", "history", f"{world.team_a}/does-not-exist")[0] == 3


@pytest.mark.parametrize("name", ["api", "certificate"])
def test_every_right_is_used_and_no_other_asked_for(world: World, name: str) -> None:
    requests = read_requests(world.cluster, NAMESPACE, f"schedulerlog-{name}")
    rights = set(list_granted(world.objects, f"schedulerlog-{name}"))
    if name == "api":
        # Of Kubernetes' own roles, system:auth-delegator and extension-apiserver-authentication-reader; those of a
        # diagnosis are in test_diagnosis.py.
        rights = {
            Right("create", "authorization.k8s.io", "subjectaccessreviews"),
            Right("get", "", "configmaps", "kube-system", "extension-apiserver-authentication"),
        }
    assert {right for right in rights if not any(request.uses(right) for request in requests)} == set()
    # Answers name what these rights would add, and where nobody gave them the API asks in vain.
    documents = yaml.safe_load_all((KUSTOMIZE / "components/diagnosis/nodes/rights.yaml").read_text())
    optional = set(list_granted(list(documents), "schedulerlog-api"))
    assert optional
    refused = [request for request in requests if request.status in (401, 403)]
    assert [request for request in refused if not any(request.uses(right) for right in optional)] == []
