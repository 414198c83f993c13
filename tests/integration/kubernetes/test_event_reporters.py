"""H8: who may create events forges none of a scheduler, with the component event-reporters on a real API server."""

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from dev.embedded.control_plane import ControlPlane
from ingest.readers.kube import KubeEvents
from ingest.readers.kube.watch import watch
from ingest.reading.metrics import Metrics
from runtime.kubernetes.credentials import from_kubeconfig
from schemas.events import AttemptConcluded, Event
from schemas.json_types import Json
from tests.support.control_plane.admission_policies import connect_account, policy_in
from tests.support.control_plane.service_account import service_account
from tests.support.waiting import eventually

RULES = [
    {"apiGroups": [group], "resources": ["events"], "verbs": ["create", "patch"]} for group in ("", "events.k8s.io")
]


@pytest.fixture
def policy(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[None]:
    with policy_in(control_plane, "event-reporters", namespace, tmp_path):
        yield


def build_refusal(namespace: str, name: str, reporter: str) -> Json:
    return {
        "metadata": {"name": name}, "reason": "FailedScheduling", "type": "Warning", "action": "Scheduling",
        "regarding": {"kind": "Pod", "namespace": namespace, "name": name, "uid": name},
        "note": "0/1 nodes are available: 1 Insufficient cpu.", "eventTime": "2026-11-21T03:13:32.250001Z",
        "reportingController": reporter, "reportingInstance": "1",
    }  # fmt: skip


def build_older(namespace: str, name: str, **reporter: object) -> Json:
    pod = {"kind": "Pod", "namespace": namespace, "name": name, "uid": name}
    return {"metadata": {"name": name}, "reason": "FailedScheduling", "involvedObject": pod} | reporter


def test_h8_an_account_of_a_tenant_reports_under_no_name_of_a_scheduler(
    control_plane: ControlPlane, policy: None, namespace: str, tmp_path: Path
) -> None:
    events, core = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", f"/api/v1/namespaces/{namespace}/events"
    with service_account(control_plane, namespace, RULES, tmp_path), connect_account(control_plane, tmp_path) as tenant:

        def post(path: str, event: Json) -> int:
            return tenant.post(path, json=event).status_code

        # The API server notices a new policy after a moment.
        tries = (f"forged-{number}" for number in range(1000))
        eventually(lambda: post(events, build_refusal(namespace, next(tries), "default-scheduler")) == 403, lambda: "")
        for reporter in ("hami-scheduler", "binder", "kubelet", "pytorchjob-controller"):
            assert post(events, build_refusal(namespace, "x", reporter)) == 403
        assert post(core, build_older(namespace, "x", source={"component": "default-scheduler"})) == 403
        assert post(core, build_older(namespace, "x", reportingComponent="volcano", reportingInstance="1")) == 403
        assert post(events, build_refusal(namespace, "own", "tenants-app")) == 201
        taken = {"reportingController": "default-scheduler"}
        patch = {"Content-Type": "application/merge-patch+json"}
        assert tenant.patch(f"{events}/own", json=taken, headers=patch).status_code in (403, 422)
    with (
        service_account(control_plane, "kube-system", RULES, tmp_path),
        connect_account(control_plane, tmp_path) as account,
    ):
        assert account.post(events, json=build_refusal(namespace, "true", "default-scheduler")).status_code == 201


class Sink:
    def __init__(self) -> None:
        self.events: list[Event] = []

    async def send(self, events: Sequence[Event]) -> None:
        self.events += events


async def test_h8_the_reader_leaves_out_reporters_that_are_not_named(
    control_plane: ControlPlane, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    sink, reader = Sink(), KubeEvents()

    def list_concluded() -> list[str]:
        return [event.pod.name for event in sink.events if isinstance(event, AttemptConcluded)]

    with control_plane.open_client() as client:
        path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        for name, reporter in (("forged", "innocent-app"), ("true", "default-scheduler")):
            assert client.post(path, json=build_refusal(namespace, name, reporter)).is_success
        load = partial(from_kubeconfig(control_plane.kubeconfig))
        async with asyncio.timeout(40):
            await watch(load, reader, sink, Metrics("x"), namespace=namespace, until=lambda: bool(list_concluded()))
    assert list_concluded() == ["true"]
    assert reader.counts.lines["untrusted"] == 1
    assert sum("'innocent-app' are not read" in record.getMessage() for record in caplog.records) == 1
