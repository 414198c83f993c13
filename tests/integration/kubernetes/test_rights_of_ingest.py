"""Rights of a pod, as docs/sources-kube-events.md prints them: they are enough, and each missing one is named."""

import asyncio
import json
import logging
import re
import shlex
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from dev.embedded.control_plane import ControlPlane
from ingest.readers.kube import KubeEvents
from ingest.readers.kube.watch import watch
from ingest.reading.metrics import Metrics
from runtime.kubernetes.credentials import load_service_account
from schemas.events import AttemptConcluded, Event, NodeObserved, PodObserved
from schemas.json_types import Json
from tests.support.control_plane.objects import MERGE_PATCH, create, created_nodes
from tests.support.control_plane.plain_scheduler import a_pod
from tests.support.control_plane.service_account import service_account

DOCUMENT = Path(__file__).parents[3] / "docs" / "sources-kube-events.md"
EVENTS = "/apis/events.k8s.io/v1/namespaces/{}/events"


def read_documented(role: int = 0) -> list[Json]:
    """Read the rules that the document's commands make: the roles are for everything, for owners, and for claims."""
    lines = re.findall(r"^ +kubectl (create clusterrole .*)$", DOCUMENT.read_text(), re.MULTILINE)
    options = dict(word.lstrip("-").split("=") for word in shlex.split(lines[role]) if word.startswith("--"))
    resources = [name.partition(".")[::2] for name in options["resource"].split(",")]
    return [
        {"apiGroups": [group], "resources": [resource], "verbs": options["verb"].split(",")}
        for resource, group in resources
    ]


class Sink:
    def __init__(self) -> None:
        self.events: list[Event] = []

    async def send(self, events: Sequence[Event]) -> None:
        self.events += events


async def watch_until(folder: Path, sink: Sink, is_enough: Callable[[], bool], namespace: str = "") -> None:
    async with asyncio.timeout(40):
        await watch(
            partial(load_service_account, folder),
            KubeEvents(),
            sink,
            Metrics("test"),
            namespace=namespace,
            until=is_enough,
        )


def is_optional(record: logging.LogRecord) -> bool:
    # Other tests leave pods of controllers in the cluster, which have owners, and events of schedulers of their own.
    optional = ("pod groups", "resource claims", "owners of pods", "events of the reporter", "workloads without pods")
    return any(text in record.getMessage() for text in optional)


@pytest.fixture
def in_a_pod(control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(control_plane.api_server.port))


async def test_the_documented_rights_are_enough(
    control_plane: ControlPlane, in_a_pod: None, namespace: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sink, node = Sink(), f"{namespace}-node"

    def is_enough() -> bool:
        nodes = {event.node for event in sink.events if isinstance(event, NodeObserved)}
        pods = {
            event.pod.namespace: type(event)
            for event in sink.events
            if isinstance(event, PodObserved | AttemptConcluded)
        }
        return node in nodes and pods.get(namespace) is AttemptConcluded

    with (
        control_plane.open_client() as client,
        created_nodes(control_plane, [{"metadata": {"name": node}}]),
        service_account(control_plane, namespace, read_documented(), tmp_path),
    ):
        pod = create(client, f"/api/v1/namespaces/{namespace}/pods", a_pod("big", schedulerName="nobody"))
        regarding = {"kind": "Pod", "namespace": namespace, "name": "big", "uid": pod["metadata"]["uid"]}
        event = {
            "metadata": {"name": "big.1"}, "regarding": regarding, "reason": "FailedScheduling", "type": "Warning",
            "note": "0/1 nodes are available: 1 Insufficient cpu.", "action": "Scheduling",
            "eventTime": "2026-11-21T03:13:32.250001Z", "reportingController": "default-scheduler",
            "reportingInstance": "1",
        }  # fmt: skip
        create(client, EVENTS.format(namespace), event)
        await watch_until(tmp_path, sink, is_enough)
    assert [record.getMessage() for record in caplog.records if not is_optional(record)] == []


@pytest.mark.parametrize(
    ("roles", "owners"),
    [((0, 1), ["Job/train", "CronJob/nightly"]), ((0,), ["Job/train"])],
    ids=["with the right to get owners", "without it"],
)
async def test_owners_are_read_as_far_as_the_rights_go(
    control_plane: ControlPlane,
    in_a_pod: None,
    namespace: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    roles: Sequence[int],
    owners: list[str],
) -> None:
    sink = Sink()

    def list_owners() -> list[list[str]]:
        pods = (event for event in sink.events if isinstance(event, PodObserved) and event.pod.name == "train-x")
        return [[str(owner) for owner in pod.description.owners] for pod in pods if pod.description]

    rules = [rule for role in roles for rule in read_documented(role)]
    with control_plane.open_client() as client, service_account(control_plane, namespace, rules, tmp_path):
        batch = f"/apis/batch/v1/namespaces/{namespace}"
        job = {"template": {"spec": a_pod("x")["spec"] | {"restartPolicy": "Never"}}}
        # Never due, and suspended besides.
        schedule = {"schedule": "0 0 30 2 *", "suspend": True, "jobTemplate": {"spec": job}}
        cron = create(client, f"{batch}/cronjobs", {"metadata": {"name": "nightly"}, "spec": schedule})
        # Kubernetes' own controller would take its name off a pod that it did not make.
        spec = job | {"suspend": True, "managedBy": "schedulerlog.io/test"}
        body = {"metadata": {"name": "train"} | build_owner("CronJob", cron), "spec": spec}
        train = create(client, f"{batch}/jobs", body)
        pod = a_pod("train-x", schedulerName="nobody")
        pod["metadata"] |= build_owner("Job", train)
        create(client, f"/api/v1/namespaces/{namespace}/pods", pod)
        await watch_until(tmp_path, sink, lambda: bool(list_owners()), namespace)
    assert list_owners()[0] == owners
    named = [record.getMessage() for record in caplog.records if "owners of pods" in record.getMessage()]
    assert len(named) == (len(owners) == 1)


def build_owner(kind: str, owner: Json) -> Json:
    reference = {"apiVersion": "batch/v1", "kind": kind, "controller": True}
    return {"ownerReferences": [reference | {field: owner["metadata"][field] for field in ("name", "uid")}]}


RIGHTS = [(verb, resource) for resource in ("pods", "nodes", "events") for verb in ("list", "watch")]


async def test_every_right_that_is_missing_is_named(
    control_plane: ControlPlane, in_a_pod: None, namespace: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def without(verb: str, resource: str) -> list[Json]:
        return [
            rule | {"verbs": [action for action in rule["verbs"] if (action, rule["resources"]) != (verb, [resource])]}
            for rule in read_documented()
        ]

    with ExitStack() as accounts:
        folders = {right: tmp_path / "-".join(right) for right in RIGHTS}
        names = {
            right: accounts.enter_context(service_account(control_plane, namespace, without(*right), folder))
            for right, folder in folders.items()
        }

        def is_named(right: tuple[str, str]) -> bool:
            user = f"system:serviceaccount:{namespace}:{names[right]}"
            text = f'User "{user}" cannot {right[0]} resource "{right[1]}"'
            return any(text in record.getMessage() and record.levelno == logging.WARNING for record in caplog.records)

        await asyncio.gather(
            *(watch_until(folder, Sink(), partial(is_named, right)) for right, folder in folders.items())
        )
        assert all(map(is_named, RIGHTS))


CLAIM_API = "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims"


@pytest.mark.parametrize("may_read", [True, False], ids=["with the right to read claims", "without it"])
async def test_devices_of_claims_are_known_where_claims_may_be_read(
    control_plane: ControlPlane,
    in_a_pod: None,
    namespace: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    may_read: bool,
) -> None:
    sink, node, claims = Sink(), f"{namespace}-node", CLAIM_API.format(namespace)

    def list_observed() -> list[PodObserved]:
        return [event for event in sink.events if isinstance(event, PodObserved) and event.node == node]

    rules = [*read_documented(), *(read_documented(2) if may_read else [])]
    with (
        control_plane.open_client() as client,
        created_nodes(control_plane, [{"metadata": {"name": node}}]),
        service_account(control_plane, namespace, rules, tmp_path),
    ):
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}
        create(client, claims, {"metadata": {"name": "own"}, "spec": {"devices": {"requests": [request]}}})
        pod = a_pod("claiming", nodeName=node, resourceClaims=[{"name": "gpu", "resourceClaimName": "own"}])
        create(client, f"/api/v1/namespaces/{namespace}/pods", pod)
        result = {"request": "gpu", "driver": "gpu.example.com", "pool": node, "device": "gpu-0"}
        status = {"status": {"allocation": {"devices": {"results": [result]}}}}
        allocated = client.patch(f"{claims}/own/status", content=json.dumps(status), headers=MERGE_PATCH)
        assert allocated.is_success, allocated.text
        await watch_until(tmp_path, sink, lambda: bool(list_observed()), namespace)
    devices = [allocation.uuid for allocation in list_observed()[0].allocations]
    assert devices == ([f"gpu.example.com/{node}/gpu-0"] if may_read else [])
    assert any("resource claims are not known" in record.getMessage() for record in caplog.records) is not may_read
