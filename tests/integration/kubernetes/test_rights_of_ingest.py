"""In a pod, with the rights that docs/sources.md prints: they are enough, and each that is missing is named."""

import asyncio
import logging
import re
import shlex
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from embedded.control_plane import ControlPlane
from ingest.kube import KubeEvents
from ingest.kube.watch import watch
from ingest.metrics import Metrics
from kube.credentials import in_cluster
from schemas.events import AttemptConcluded, Event, NodeObserved, PodObserved
from tests.support.control_plane.objects import Json, create, created_nodes
from tests.support.control_plane.plain_scheduler import a_pod
from tests.support.control_plane.service_account import service_account

DOCUMENT = Path(__file__).parents[3] / "docs" / "sources.md"
EVENTS = "/apis/events.k8s.io/v1/namespaces/{}/events"


def documented() -> list[Json]:
    """The rules that the document's first ``kubectl create clusterrole`` makes: the second one is for owners."""
    line, _ = re.findall(r"^ +kubectl (create clusterrole .*)$", DOCUMENT.read_text(), re.MULTILINE)
    options = dict(word.lstrip("-").split("=") for word in shlex.split(line) if word.startswith("--"))
    resources = [each.partition(".")[::2] for each in options["resource"].split(",")]
    return [
        {"apiGroups": [group], "resources": [resource], "verbs": options["verb"].split(",")}
        for resource, group in resources
    ]


class Sink:
    def __init__(self) -> None:
        self.events: list[Event] = []

    async def send(self, events: Sequence[Event]) -> None:
        self.events += events


async def watched(folder: Path, sink: Sink, is_enough: Callable[[], bool], namespace: str = "") -> None:
    async with asyncio.timeout(40):
        await watch(
            partial(in_cluster, folder), KubeEvents(), sink, Metrics("test"), namespace=namespace, until=is_enough
        )


@pytest.fixture
def in_a_pod(control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(control_plane.api_server.port))


async def test_the_documented_rights_are_enough(
    control_plane: ControlPlane, in_a_pod: None, namespace: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sink, node = Sink(), f"{namespace}-node"

    def is_enough() -> bool:
        nodes = {each.node for each in sink.events if isinstance(each, NodeObserved)}
        pods = {
            each.pod.namespace: type(each) for each in sink.events if isinstance(each, PodObserved | AttemptConcluded)
        }
        return node in nodes and pods.get(namespace) is AttemptConcluded

    with (
        control_plane.client() as client,
        created_nodes(control_plane, [{"metadata": {"name": node}}]),
        service_account(control_plane, namespace, documented(), tmp_path),
    ):
        pod = create(client, f"/api/v1/namespaces/{namespace}/pods", a_pod("big", schedulerName="nobody"))
        about = {"kind": "Pod", "namespace": namespace, "name": "big", "uid": pod["metadata"]["uid"]}
        event = {
            "metadata": {"name": "big.1"}, "regarding": about, "reason": "FailedScheduling", "type": "Warning",
            "note": "0/1 nodes are available: 1 Insufficient cpu.", "action": "Scheduling",
            "eventTime": "2026-11-21T03:13:32.250001Z", "reportingController": "nobody", "reportingInstance": "1",
        }  # fmt: skip
        create(client, EVENTS.format(namespace), event)
        await watched(tmp_path, sink, is_enough)
    assert [record.getMessage() for record in caplog.records if "pod groups" not in record.getMessage()] == []


RIGHTS = [(verb, resource) for resource in ("pods", "nodes", "events") for verb in ("list", "watch")]


async def test_every_right_that_is_missing_is_named(
    control_plane: ControlPlane, in_a_pod: None, namespace: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def without(verb: str, resource: str) -> list[Json]:
        return [
            rule | {"verbs": [each for each in rule["verbs"] if (each, rule["resources"]) != (verb, [resource])]}
            for rule in documented()
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

        await asyncio.gather(*(watched(folder, Sink(), partial(is_named, right)) for right, folder in folders.items()))
        assert all(map(is_named, RIGHTS))
