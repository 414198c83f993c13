"""Two tenants and those who look after their cluster, with an API that asks a real API server about each of them.

Two proxies record what the API asks of the API server and of OpenSearch, and fail as a test wants.
"""

import json
import ssl
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from api.http.sealing import decode_base64, encode_base64
from dev.embedded.control_plane import ControlPlane
from schemas.events import (
    AttemptSummarized,
    Condition,
    DeviceAllocation,
    NodeObserved,
    NodeRegistered,
    PodObserved,
    PodRef,
)
from schemas.json_types import Json
from schemas.placements import PodPlacement
from tests.support.backends import Addresses
from tests.support.builders.events import build_devices_judged
from tests.support.builders.node_states import build_states
from tests.support.control_plane.callers import Callers, build_path_rule, build_rule
from tests.support.control_plane.objects import created_namespace
from tests.support.control_plane.service_account import a_kubeconfig, service_account
from tests.support.harness.api_process import serving
from tests.support.harness.index_filling import NOW, Filling, a_finding, an_attempt
from tests.support.http_proxy import HttpProxy
from tests.support.waiting import eventually

OTHERS_POD: Final = "secret-model"
"""The other tenant's pod: its name is in no answer to who may not read it."""
START: Final = NOW - timedelta(hours=1)
PODS, NODES = "pods/schedulerlog", "nodes/schedulerlog"
TOKEN_REVIEW: Final = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - a path
ACCESS_REVIEW: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
REVIEWS: Final = [
    {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
    {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
]
"""Rights that system:auth-delegator allows."""
CALLERS: Final = (
    "alice", "one", "lead", "bob", "pods", "all", "nodes", "nodes-lead", "prom", "lister",
    "revoked", "leaving", "leaving-pod", "ending",
)  # fmt: skip
MANY: Final = 25
"""Number of namespaces that have pods on one node."""


class Tenants(NamedTuple):
    client: httpx.Client
    callers: Callers
    headers: dict[str, dict[str, str]]
    team_a: str
    team_b: str
    node: str
    filling: Filling
    cluster: str
    reviews: HttpProxy
    """Between the API and the API server."""
    searches: HttpProxy
    """Between the API and OpenSearch."""
    control_plane: ControlPlane
    kubeconfig: Path
    """The API's own: its account may review callers, through the proxy."""
    log: Path
    """Log of the API."""

    def publish(self, *pods: str, after: timedelta) -> None:
        """Publish an attempt of each pod onto the topic, so long after the start."""
        attempts = [an_attempt(pod, started_at=START + after) for pod in pods]
        self.filling.publish(*(attempt.model_copy(update={"cluster": self.cluster}) for attempt in attempts))

    @contextmanager
    def watch(self, caller: str, path: str, **headers: str) -> Iterator[Iterator[Json]]:
        """The events, as they come."""
        with self.watch_with(self.headers[caller] | headers, path) as events:
            yield events

    @contextmanager
    def watch_with(self, headers: dict[str, str], path: str) -> Iterator[Iterator[Json]]:
        with self.client.stream("GET", "/api/v1" + self.fill_names(path), headers=headers) as answer:
            assert answer.status_code == httpx.codes.OK, answer.read()
            yield (json.loads(line.removeprefix("data: ")) for line in answer.iter_lines() if line.endswith("}"))

    def get(self, caller: str, path: str, **headers: str) -> httpx.Response:
        return self.client.get("/api/v1" + self.fill_names(path), headers=self.headers[caller] | headers)

    def get_with(self, headers: dict[str, str], path: str) -> httpx.Response:
        return self.client.get("/api/v1" + self.fill_names(path), headers=headers)

    def fill_names(self, path: str) -> str:
        return path.format(team_a=self.team_a, team_b=self.team_b, node=self.node)

    def renew_header(self, caller: str) -> dict[str, str]:
        """Build the header with a new token, of which nothing is remembered: it has a credential id of its own."""
        return self.callers.build_header(caller)

    def build_ending_header(self, caller: str, after: float) -> dict[str, str]:
        """Build the header with a token that ends after so many seconds, signed with the API server's own key.

        The API server itself issues none for less than ten minutes.
        """
        head, claims, _ = self.renew_header(caller)["Authorization"].removeprefix("Bearer ").split(".")
        key = load_pem_private_key(self.control_plane.credentials.service_account_key.read_bytes(), None)
        assert isinstance(key, RSAPrivateKey)
        ending = json.loads(decode_base64(claims) or b"") | {"exp": int(time.time() + after)}
        signed = f"{head}.{encode_base64(json.dumps(ending).encode())}"
        signature = encode_base64(key.sign(signed.encode(), PKCS1v15(), SHA256()))
        return {"Authorization": f"Bearer {signed}.{signature}"}

    def list_reviews(self, path: str) -> list[Json]:
        """List the specs of the reviews of this kind, since the proxy forgot."""
        return [request.parse_json()["spec"] for request in self.reviews.passed if request.path == path]

    def list_searches(self) -> list[bytes]:
        """List the requests to the index about one of the tenants, or this cluster."""
        marks = [name.encode() for name in (self.cluster, self.team_a, self.team_b)]
        sent = [request.path.encode() + b" " + request.sent for request in self.searches.passed]
        return [text for text in sent if any(mark in text for mark in marks)]


@contextmanager
def tenants(
    control_plane: ControlPlane, backends: Addresses, folder: Path, authority: Path | None = None, **settings: str
) -> Iterator[Tenants]:
    """``settings`` are the API's, beside those that it needs to be asked; ``authority`` is that of its certificate."""
    mark = uuid.uuid4().hex[:8]
    team_a, team_b, node = f"team-a-{mark}", f"team-b-{mark}", f"node-{mark}"
    filling = Filling(backends.bootstrap_servers, backends.opensearch_url)
    fill(filling, mark, team_a, team_b, node)
    trust = ssl.create_default_context(cafile=control_plane.ca)
    with ExitStack() as stack:
        for name in (team_a, team_b):
            stack.enter_context(created_namespace(control_plane, name))
        stack.enter_context(service_account(control_plane, team_a, REVIEWS, folder))
        reviews = stack.enter_context(HttpProxy(control_plane.url, trust))
        searches = stack.enter_context(HttpProxy(backends.opensearch_url))
        log_file, kubeconfig = folder / "api.log", a_kubeconfig(folder, control_plane, reviews.url)
        api_settings = {
            "SCHEDULERLOG_API_AUTHENTICATION": "kubernetes",
            "SCHEDULERLOG_KUBECONFIG": str(kubeconfig),
            "SCHEDULERLOG_CLUSTER_NAME": mark,
            "SCHEDULERLOG_API_WATCHES": "30",
            # What is not about time-outs has no short one: the machine may be slow beside other work.
            "SCHEDULERLOG_OPENSEARCH_TIMEOUT": "20",
        }
        callers = Callers(control_plane, team_a)
        stack.callback(callers.remove)
        headers = grant_rights(callers, team_a, team_b)
        log = stack.enter_context(log_file.open("w"))
        api = stack.enter_context(
            serving(backends.bootstrap_servers, searches.url, authority, log, **api_settings | settings)
        )
        eventually(api.is_ready, "the API is not ready")
        yield Tenants(
            api.client, callers, headers, team_a, team_b, node, filling, mark, reviews, searches, control_plane,
            kubeconfig, log_file,
        )  # fmt: skip


def grant_rights(callers: Callers, team_a: str, team_b: str) -> dict[str, dict[str, str]]:
    """Create the callers of the matrix, each with the header that names it."""
    for name in CALLERS:
        callers.create_account(name)
    callers.grant("alice", build_rule(PODS, "get"), namespace=team_a)
    callers.grant("one", build_rule(PODS, "get", names=["train-0"]), namespace=team_a)
    callers.grant("lead", build_rule(PODS, "get", "list"), namespace=team_a)
    callers.grant("bob", build_rule(PODS, "get", "list"), namespace=team_b)
    callers.grant("pods", build_rule("pods", "get", "list", group=""), namespace=team_a)
    callers.grant("all", build_rule(PODS, "get", "list"))
    callers.grant("nodes", build_rule(NODES, "get"))
    callers.grant("nodes-lead", build_rule(NODES, "get", "list"))
    callers.grant("nodes-lead", build_rule(PODS, "get", "list"), namespace=team_a)
    callers.grant("prom", build_path_rule("/metrics"), build_path_rule("/readyz"))
    callers.grant("lister", build_rule(PODS, "list"), namespace=team_a)
    callers.grant("leaving", build_rule(PODS, "get"), namespace=team_a)
    callers.grant("leaving-pod", build_rule(PODS, "get"), namespace=team_a)
    return {name: callers.build_header(name) for name in CALLERS} | {
        "nobody": {},
        "bogus": {"Authorization": "Bearer bogus"},
        "alice-for-another-audience": callers.build_header("alice", "https://kubernetes.default.svc"),
    }


def fill(filling: Filling, cluster: str, team_a: str, team_b: str, node: str) -> None:
    """Record two tenants on one device; what is recorded of one names the pod of the other."""
    filling.provision()
    cluster_field = {"cluster": cluster}
    train, secret = f"{team_a}/train-0", f"{team_b}/{OTHERS_POD}"
    attempts = [an_attempt(pod, nodes=[node], chosen=node, bound=True) for pod in (train, f"{team_a}/train-1", secret)]
    locked = an_attempt(f"{team_a}/train-2", nodes=[node], chosen=node, bound=False)
    assert locked.bind
    bind = locked.bind.model_dump() | {"lock_holder": {"pod": secret, "locked_at": START}}
    locked = type(locked).model_validate(locked.model_dump() | {"bind": bind})
    filling.index(
        *(
            attempt.model_copy(update=cluster_field)
            for attempt in (*attempts, locked, *build_naming(team_a, secret, node))
        )
    )
    filling.index_placements(*(a_placement(cluster, pod, node) for pod in (train, secret)))
    many = (f"team-{number:02}-{cluster}/held-{number:02}" for number in range(MANY))
    filling.index_placements(*(a_placement(cluster, pod, f"{node}-many") for pod in many))
    of_train: dict[str, Any] = {
        "attempt_id": attempts[0].attempt_id,
        "pod": attempts[0].pod,
        "started_at": attempts[0].started_at,
    }
    judged = build_devices_judged((node,), per_node=2, cluster=cluster, **of_train)
    filling.index_devices(judged)
    filling.index_states(*build_states(judged, cluster=cluster))
    registered = {
        "cluster": cluster, "node": node, "observed_at": START, "scheduler": "hami-scheduler", "registered": True,
        "handshake": "Reported", "uuid": [f"GPU-{node}"], "model": ["NVIDIA A100"], "mode": ["hami-core"], "index": [0],
        "healthy": [True], "memory_mib": [40960], "cores_percent": [100], "slots": [10], "numa": [0],
    }  # fmt: skip
    seen = NodeObserved(cluster=cluster, node=node, observed_at=START, capacity={}, allocatable={}, conditions=[])
    preempted = Condition(type="Preempted", status="True", message=f"Pod {train} was preempted for {secret}")
    evicted = PodObserved(
        cluster=cluster, pod=attempts[0].pod, observed_at=START, phase="Pending", conditions=[preempted]
    )  # fmt: skip
    filling.index_observations(NodeRegistered.model_validate(registered), seen, evicted)
    lines = {"evidence": [f"{train} holds 20000 MiB", f"{secret} holds 30000 MiB"], "evidence_pods": [train, secret]}
    shared = a_finding(train, node=node).model_copy(update={**cluster_field, **lines})
    # As a log has them: which pods its lines are about is not recorded.
    logged = a_finding(train, node=f"{node}-b").model_copy(update={**cluster_field, "evidence": lines["evidence"]})
    # One name is a part of the other: what hides a line is the pod that it is about.
    alike = [f"{team_a}/train-0-secret", f"{team_b}/train-0"]
    lines = {"evidence": [f"{pod} holds 10 MiB" for pod in alike], "evidence_pods": alike}
    similar = a_finding(train, node=f"{node}-c").model_copy(update={**cluster_field, **lines})
    filling.index_findings(shared, logged, similar, a_finding(secret, node=node).model_copy(update=cluster_field))


def build_naming(team_a: str, secret: str, node: str) -> list[AttemptSummarized]:
    """Build attempts of the first team whose words name the other team's pod, as a scheduler writes them."""
    bound = an_attempt(f"{team_a}/named-1", nodes=[node], chosen=node, bound=False)
    assert bound.bind
    error = f"node {node} is held by pod {secret}: 3/8 devices, dial tcp: i/o timeout"
    failed = an_attempt(f"{team_a}/named-2", nodes=[])
    return [
        bound.model_copy(update={"bind": bound.bind.model_copy(update={"error": error})}),
        failed.model_copy(
            update={
                "error": f"no victim: {secret}, {team_a}/train-0 and /namespaces/{secret.replace('/', '/pods/')} stay",
                "scheduler_message": f"preempted by {secret}",
                "changes": [f"error: preempted by {secret}"],
            }
        ),
    ]


def a_placement(cluster: str, pod: str, node: str) -> PodPlacement:
    namespace, name = pod.split("/")
    held = DeviceAllocation(uuid=f"GPU-{node}", container="main", memory_mib=20_000, cores_percent=40)
    return PodPlacement(
        cluster=cluster, id=pod, pod=PodRef(namespace=namespace, name=name, uid=f"uid-{name}"), node=node,
        started_at=START, scheduler="hami-scheduler", attempt_id="", phase="Running", allocations=[held],
    )  # fmt: skip
