"""A kubelet that serves the logs of one pod: the API server's ``pods/log`` leads to it.

It is a kwok of its own, whose log reader is the kubelet's: it reads the files that a container runtime writes, filters
by time, puts the time in front, follows. The node's kubelet endpoint is a proxy before it, which a test can cut.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import yaml

from dev.embedded.control_plane import ControlPlane
from dev.embedded.control_plane.programs import answers
from dev.embedded.ports import KUBERNETES_PORTS, find_free_port
from tests.support.control_plane.objects import create, created_nodes
from tests.support.tcp_proxy import TcpProxy
from tests.support.waiting import eventually

CONTAINER = "main"


@dataclass
class Kubelet:
    """``current`` and ``previous`` are log files as containerd writes them."""

    folder: Path
    proxy: TcpProxy
    written: list[bytes] = field(default_factory=list)
    """All lines that the container wrote, in order."""

    @property
    def current(self) -> Path:
        return self.folder / "1.log"

    @property
    def previous(self) -> Path:
        return self.folder / "0.log"

    def write(self, lines: list[bytes], time: datetime | None = None) -> None:
        """Write lines. ``time``: the container runtime's clock; by default every line has a time of its own."""
        with self.current.open("ab") as file:
            for line in lines:
                stamp = (time or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%S.%f000Z").encode()
                file.write(b"%b stderr F %b\n" % (stamp, line))
        self.written += lines

    def start_again(self) -> None:
        """End the container and start it: it writes into another file."""
        self.current.rename(self.previous)
        self.current.touch()


@contextmanager
def serving_the_log_of(cluster: ControlPlane, namespace: str, pod: str, folder: Path) -> Iterator[Kubelet]:
    """A node with one pod whose log is what the test writes."""
    folder.mkdir()
    port = find_free_port(KUBERNETES_PORTS)
    with TcpProxy(lambda: port) as proxy, _kwok(cluster, folder, namespace, pod, port):
        kubelet = Kubelet(folder, proxy)
        kubelet.current.touch()
        with (
            created_nodes(cluster, [_build_node(f"{namespace}-kubelet", proxy.port)]) as (node,),
            cluster.open_client() as client,
        ):
            container = {"name": CONTAINER, "image": "none"}
            spec = {"nodeName": node, "containers": [container], "terminationGracePeriodSeconds": 0}
            pods = f"/api/v1/namespaces/{namespace}/pods"
            create(client, pods, {"metadata": {"name": pod}, "spec": spec})
            eventually(lambda: client.get(f"{pods}/{pod}").json()["status"]["phase"] == "Running", "it does not run")
            yield kubelet


def _build_node(name: str, port: int) -> dict[str, object]:
    amounts = {"cpu": "8", "memory": "8Gi", "pods": "10"}
    addresses = [{"type": kind, "address": "127.0.0.1"} for kind in ("InternalIP", "Hostname")]
    status = {
        "addresses": addresses, "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        # The other kwok, which plays all nodes, gives its own address to those that are not ready.
        "conditions": [{"type": "Ready", "status": "True"}], "capacity": amounts, "allocatable": amounts,
    }  # fmt: skip
    return {"metadata": {"name": name}, "status": status}


@contextmanager
def _kwok(cluster: ControlPlane, folder: Path, namespace: str, pod: str, port: int) -> Iterator[None]:
    logs = {"containers": [CONTAINER], "logsFile": f"{folder}/1.log", "previousLogsFile": f"{folder}/0.log"}
    configured = {
        "apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Logs",
        "metadata": {"name": pod, "namespace": namespace}, "spec": {"logs": [logs | {"follow": True}]},
    }  # fmt: skip
    stages = subprocess.run([cluster.binary, "kwok-stages"], capture_output=True, check=True).stdout.decode()
    (folder / "kwok.yaml").write_text(f"{yaml.safe_dump(configured)}---\n{stages}")
    command = [
        str(cluster.binary), "kwok", f"--config={folder / 'kwok.yaml'}", f"--kubeconfig={cluster.kubeconfig}",
        "--manage-all-nodes=false", "--manage-nodes-with-label-selector=played=here",
        f"--server-address=127.0.0.1:{port}",
    ]  # fmt: skip
    with (folder / "kwok.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            eventually(lambda: answers(f"http://127.0.0.1:{port}/healthz"), f"kwok does not answer; see {folder}")
            yield
        finally:
            process.kill()
