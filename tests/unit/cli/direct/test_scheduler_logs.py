"""The scheduler's log as a rung of a live answer: what HAMi decided, and where the judge differs now."""

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from cli.client.kubectl import parse_kubectl_problem
from cli.client.problems import Problem
from cli.direct.reader import ObjectReader
from cli.direct.transport import DirectTransport
from schemas.json_types import Json
from tests.support.builders.hami_lines import write_failure, write_request, write_start, write_unfit

POD: Json = {
    "metadata": {"name": "trainer", "namespace": "ml", "creationTimestamp": "2026-01-01T10:00:00Z"},
    "spec": {
        "schedulerName": "hami-scheduler",
        "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "20480"}}}],
    },
    "status": {"phase": "Pending"},
}
DEVICES = [{"id": "GPU-1", "count": 10, "devmem": 40000, "devcore": 100, "type": "NVIDIA-A100", "health": True}]
NODES: list[Json] = [
    {
        "metadata": {
            "name": name,
            "annotations": {
                "hami.io/node-nvidia-register": json.dumps([{**DEVICES[0], "id": f"GPU-{name}"}]),
                "hami.io/node-handshake": "Reported 2026-01-01 11:59:50",
            },
        },
        "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "110", "nvidia.com/gpu": "10"}},
    }
    for name in ("n0", "n1")
]
SCHEDULER: Json = {
    "metadata": {"name": "hami-scheduler-5d4", "namespace": "kube-system"},
    "spec": {"containers": [{"name": "kube-scheduler"}, {"name": "vgpu-scheduler-extender"}]},
    "status": {"phase": "Running"},
}
LOG = b"\n".join(
    [
        write_start(),
        write_request(1),
        write_unfit("n0", "CardInsufficientMemory"),
        write_unfit("n1", "CardInsufficientMemory"),
        write_failure(2),
    ]
)
LOG_PATH = "/api/v1/namespaces/kube-system/pods/hami-scheduler-5d4/log"


class Server:
    """An API server with one scheduler, whose log has the text; None refuses it."""

    def __init__(self, log: bytes | None, pods: list[Json]) -> None:
        self.log, self.pods = log, pods
        self.options: dict[str, list[str]] = {}

    def fetch(self, address: str) -> bytes | Problem:
        url = urlsplit(address)
        if url.path == LOG_PATH:
            self.options = parse_qs(url.query)
            if self.log is None:
                return parse_kubectl_problem(
                    'Error from server (Forbidden): pods/log is forbidden: User "u" cannot get'
                )
            return self.log
        objects: dict[str, Any] = {
            "/api/v1/namespaces/ml/pods/trainer": POD,
            "/api/v1/nodes": {"items": NODES},
            "/api/v1/pods": {"items": self.pods},
        }
        if url.path in objects:
            return json.dumps(objects[url.path]).encode()
        return parse_kubectl_problem('Error from server (NotFound): "x" not found')


def ask(log: bytes | None, pods: list[Json]) -> tuple[Json, list[str], Server]:
    server, notes = Server(log, pods), list[str]()
    answer = DirectTransport(ObjectReader(server.fetch), lambda: "ml", notes.append).get(
        "/namespaces/ml/pods/trainer/diagnosis"
    )
    assert isinstance(answer, dict), answer
    return answer, notes, server


def test_what_the_scheduler_decided_is_the_answer_and_the_judges_difference_is_named() -> None:
    answer, notes, server = ask(LOG, [POD, SCHEDULER])
    assert answer["obstacle"]["code"] == "CardInsufficientMemory"
    assert {node["name"] for node in answer["nodes"]} == {"n0", "n1"}
    # Both devices are free now.
    (text,) = [note for note in notes if "kube-system/hami-scheduler-5d4" in note]
    assert "2 nodes differ: n0, n1" in text
    assert server.options["container"] == ["vgpu-scheduler-extender"]
    assert {"tailLines", "limitBytes", "sinceSeconds"} <= server.options.keys()


def test_a_log_that_may_not_be_read_is_a_further_rung() -> None:
    _, notes, _ = ask(None, [POD, SCHEDULER])
    assert any("pods/log in kube-system" in note for note in notes)


def test_a_log_without_the_pod_is_named_and_adds_nothing() -> None:
    answer, notes, _ = ask(b"no line of a scheduler", [POD, SCHEDULER])
    assert any("has no attempt of the pod" in note for note in notes)
    assert answer["nodes"]


@pytest.mark.parametrize("namespace", ["ml"])
def test_a_scheduler_in_the_pods_namespace_is_not_believed(namespace: str) -> None:
    disguised = {**SCHEDULER, "metadata": {"name": "hami-scheduler-5d4", "namespace": namespace}}
    _, notes, server = ask(LOG, [POD, disguised])
    assert not server.options
    assert len(notes) == 1


def test_both_verdicts_of_a_node_on_which_they_differ_are_in_the_answer() -> None:
    answer, _, _ = ask(LOG, [POD, SCHEDULER])
    assert [difference["node"] for difference in answer["differences"]] == ["n0", "n1"]
    first = answer["differences"][0]
    assert (first["scheduler"]["status"], first["judged"]["status"]) == ("failed", "passed")
    assert "CardInsufficientMemory" in first["scheduler"]["containers"][0]["reason"]


def test_without_a_log_nothing_differs() -> None:
    answer, _, _ = ask(b"no line of a scheduler", [POD, SCHEDULER])
    assert answer["differences"] == []
