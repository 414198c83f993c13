"""The programs of the control plane as servers: their flags, and how to see that each is ready for work."""

import json
import ssl
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx
import yaml

from dev.embedded.control_plane.credentials import Credentials
from dev.embedded.process import ParentWatch, ProcessId
from dev.embedded.server import Server

# Those that pods, their events and workloads need; not those of clouds, certificates and storage.
CONTROLLERS: Final = (
    "serviceaccount-controller", "serviceaccount-token-controller", "root-ca-certificate-publisher-controller",
    "namespace-controller", "garbage-collector-controller", "clusterrole-aggregation-controller",
    "deployment-controller", "replicaset-controller", "statefulset-controller", "daemonset-controller",
    "job-controller", "cronjob-controller", "disruption-controller", "resourcequota-controller",
    "pod-garbage-collector-controller", "ttl-after-finished-controller", "endpointslice-controller",
)  # fmt: skip

# Who asked for what, of service accounts outside of kube-system, where the controllers' are: what they ask for is much.
AUDIT_POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "userGroups": ["system:serviceaccounts:kube-system"]},
        {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
        {"level": "None"},
    ],
}


class Program(Server):
    """One of the programs in the executable."""

    def __init__(
        self,
        name: str,
        home: Path,
        port: int,
        binary: Path,
        parent_watch: ParentWatch | None = None,
        process: ProcessId | None = None,
    ) -> None:
        super().__init__(name, home, port, parent_watch, process)
        self._binary = binary

    def prepare(self) -> None:
        pass

    def run(self, program: str, *flags: str) -> list[str]:
        return [str(self._binary), program, *flags]


class AlphaFeatures(NamedTuple):
    """Features of Kubernetes that are off by default: feature gates, and versions of API groups that are served."""

    gates: tuple[str, ...] = ()
    apis: tuple[str, ...] = ()

    def list_gate_flags(self) -> list[str]:
        """List the flags of every program that has the gates."""
        return [f"--feature-gates={','.join(f'{gate}=true' for gate in self.gates)}"] if self.gates else []

    def list_api_flags(self) -> list[str]:
        """List the further flags of the API server."""
        return [f"--runtime-config={','.join(f'{api}=true' for api in self.apis)}"] if self.apis else []


NO_ALPHA: Final = AlphaFeatures()


class Etcd(Program):
    """The API server's store: one member, its data in ``home``."""

    def __init__(self, *args: Any, peer_port: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.peer_port = peer_port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def build_command(self) -> list[str]:
        peer = f"http://127.0.0.1:{self.peer_port}"
        return self.run(
            "etcd", f"--data-dir={self.home / 'data'}", "--log-level=warn",
            f"--listen-client-urls={self.url}", f"--advertise-client-urls={self.url}",
            f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=default={peer}",
            # The next run creates again what a power failure destroys, so writes need not wait for the disk.
            # 4 GiB: above its quota, 2 GiB by default, etcd refuses all writes.
            "--unsafe-no-fsync", "--quota-backend-bytes=4294967296",
        )  # fmt: skip

    def is_answering(self) -> bool:
        return answers(f"{self.url}/health")


class ApiServer(Program):
    """The API server; users of ``credentials`` have the rights that RBAC gives them."""

    def __init__(
        self, *args: Any, etcd: Etcd, credentials: Credentials, alpha: AlphaFeatures = NO_ALPHA, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._etcd, self._alpha = etcd, alpha
        self._credentials = credentials

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def audit_log(self) -> Path:
        """A line of JSON for each request of a service account outside of kube-system."""
        return self.home / "audit.log"

    def prepare(self) -> None:
        self._audit_policy.write_text(json.dumps(AUDIT_POLICY), encoding="utf-8")

    @property
    def _audit_policy(self) -> Path:
        return self.home / "audit-policy.json"

    def build_command(self) -> list[str]:
        files = self._credentials
        return self.run(
            "kube-apiserver", f"--etcd-servers={self._etcd.url}",
            "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", f"--secure-port={self.port}",
            f"--tls-cert-file={files.server_certificate}", f"--tls-private-key-file={files.server_key}",
            f"--client-ca-file={files.ca}", f"--token-auth-file={files.tokens}", "--authorization-mode=Node,RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={files.service_account_key}",
            f"--service-account-signing-key-file={files.service_account_key}",
            "--service-cluster-ip-range=10.96.0.0/16", *files.front_proxy_flags,
            # No pod network exists through which the service `kubernetes` could be reached.
            "--endpoint-reconciler-type=none",
            # It would taint every node, because no kubelet reports them as ready.
            "--disable-admission-plugins=TaintNodesByCondition",
            "--profiling=false",
            f"--audit-policy-file={self._audit_policy}", f"--audit-log-path={self.audit_log}",
            # Every line is in the file when the request is answered.
            "--audit-log-mode=blocking-strict", *self._alpha.list_gate_flags(), *self._alpha.list_api_flags(),
        )  # fmt: skip

    def is_answering(self) -> bool:
        """Tell whether the API server can store an object and delete it again."""
        configmaps = "/api/v1/namespaces/kube-system/configmaps"
        name = f"embedded-probe-{uuid.uuid4().hex}"
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        try:
            with self.open_client() as client:
                client.get("/readyz").raise_for_status()
                # ``/readyz`` alone does not show that kube-system exists and that etcd takes writes.
                client.post(configmaps, json=body).raise_for_status()
                client.delete(f"{configmaps}/{name}").raise_for_status()
        except httpx.HTTPError:
            return False
        return True

    def open_client(self, user: str = "admin") -> httpx.Client:
        """Open an HTTP client with the token of this user; the caller closes it."""
        return httpx.Client(
            base_url=self.url,
            verify=ssl.create_default_context(cafile=self._credentials.ca),
            headers={"Authorization": f"Bearer {self._credentials.read_token(user)}"},
            # A proxy of the environment does not reach the loopback interface of this machine.
            trust_env=False,
            timeout=10.0,
        )


class ControllerManager(Program):
    """kube-controller-manager. Without it a namespace has no service account, and so cannot have pods."""

    def __init__(self, *args: Any, api_server: ApiServer, credentials: Credentials, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._api_server = api_server
        self._credentials = credentials

    def build_command(self) -> list[str]:
        files = self._credentials
        return self.run(
            "kube-controller-manager", f"--kubeconfig={files.locate_kubeconfig('controller-manager')}",
            f"--controllers={','.join(CONTROLLERS)}",
            # Its own role is for starting alone: without these accounts it may create neither a pod nor a ReplicaSet.
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={files.service_account_key}", f"--root-ca-file={files.ca}",
            "--bind-address=127.0.0.1", f"--secure-port={self.port}", f"--cert-dir={self.home}",
            # One replica needs no election; at the default of 20 requests a second, tests with many objects would wait
            # for the controllers.
            "--leader-elect=false", "--kube-api-qps=500", "--kube-api-burst=1000",
        )  # fmt: skip

    def is_answering(self) -> bool:
        """Tell whether a pod could be created, which needs the default service account."""
        try:
            with self._api_server.open_client() as client:
                return client.get("/api/v1/namespaces/default/serviceaccounts/default").status_code == httpx.codes.OK
        except httpx.HTTPError:
            return False


class KubeScheduler(Program):
    """kube-scheduler with a KubeSchedulerConfiguration, completed with what every run here needs."""

    def __init__(
        self,
        *args: Any,
        credentials: Credentials,
        configuration: Mapping[str, Any],
        alpha: AlphaFeatures = NO_ALPHA,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._credentials, self._alpha = credentials, alpha
        self.configuration = configuration

    def prepare(self) -> None:
        # The default of 50 requests a second would bound what a test of scheduling measures.
        connection = {"kubeconfig": str(self._credentials.locate_kubeconfig("scheduler")), "qps": 1000, "burst": 2000}
        document = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": connection,
            "leaderElection": {"leaderElect": False},
            **self.configuration,
        }
        # Through JSON, because ``safe_dump`` refuses mappings that are not plain dictionaries.
        (self.home / "configuration.yaml").write_text(yaml.safe_dump(json.loads(json.dumps(document))))

    def build_command(self) -> list[str]:
        return self.run(
            "kube-scheduler", f"--config={self.home / 'configuration.yaml'}", "--v=3",
            "--bind-address=127.0.0.1", f"--secure-port={self.port}", f"--cert-dir={self.home}",
            # Its metrics are for benchmarks, which know no token of its own.
            "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics", *self._alpha.list_gate_flags(),
        )  # fmt: skip

    def is_answering(self) -> bool:
        """Tell whether its caches are in sync, so that it schedules."""
        return answers(f"https://127.0.0.1:{self.port}/readyz")


class Kwok(Program):
    """kwok simulates the kubelets of all nodes: bound pods run, deleted pods disappear, nodes become ready."""

    def __init__(self, *args: Any, credentials: Credentials, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._credentials = credentials

    def prepare(self) -> None:
        # kwok's default stages are Go constants of its module and not a file: the executable prints them.
        stages = subprocess.run(self.run("kwok-stages"), capture_output=True, check=True).stdout
        (self.home / "stages.yaml").write_bytes(stages)

    def build_command(self) -> list[str]:
        kubeconfig = self._credentials.locate_kubeconfig("admin")
        return self.run(
            "kwok", f"--config={self.home / 'stages.yaml'}", f"--kubeconfig={kubeconfig}",
            "--manage-all-nodes=true", f"--server-address=127.0.0.1:{self.port}",
        )  # fmt: skip

    def is_answering(self) -> bool:
        return answers(f"http://127.0.0.1:{self.port}/healthz")


def answers(url: str) -> bool:
    """Tell whether the URL answers 200 now; its certificate is not checked, because it is on the loopback interface."""
    try:
        return httpx.get(url, verify=False, trust_env=False, timeout=5.0).status_code == httpx.codes.OK  # noqa: S501
    except httpx.HTTPError:
        return False
