"""The OpenAPI document with an example of each answer; ``python -m tests.support.harness.api_document`` writes it.

The examples are what the application answers from memory and index with the golden records.
"""

import asyncio
import re
from collections.abc import Iterable
from typing import Any, Final

import orjson

from api.http.errors import describe_problem
from api.http.openapi_document import FILE, Described, build_document
from api.http.operation import OperationRoute
from api.metrics import PREFIX
from engine.snapshot.needed_kinds import BUDGETS
from schemas.json_types import Json
from tests.support.builders.capacity import a_budget, a_replica
from tests.support.builders.simulations import a_gpu_node, a_gpu_pod
from tests.support.fakes.objects import FakeObjects
from tests.support.harness.api_app import Caller, answer_nothing
from tests.support.harness.golden_index import answer_search, read_alert, read_attempt

_NAMES: Final = {
    "namespace": "llm",
    "name": "deepseek-5996b8569d-kgwgx",
    "node": "node3",
    "word": "job",
    "attempt_id": "6f97a54de6fbb9e27ee3a1dc8d608d38",
}
"""Path parameters under which the golden records have something."""
_WORKLOAD: Final = "getWorkload"
_DRAIN: Final = "getNodeDrain"
_PURCHASE: Final = "getPurchase"
_OF_OBJECTS: Final = (_WORKLOAD, _DRAIN, _PURCHASE)
"""Operations that are answered from objects, of which the golden records have none."""
_JOB: Final[Json] = {
    "metadata": {"namespace": "llm", "name": "train", "creationTimestamp": "2026-04-22T02:15:40Z"},
    "spec": {"parallelism": 1, "template": {"spec": {"containers": [{"name": "main"}]}}},
}
_POD_OF_JOB: Final[Json] = {
    "metadata": {
        "namespace": "llm", "name": "train-0", "creationTimestamp": "2026-04-22T02:15:41Z",
        "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "controller": True}],
    },
    "spec": {"nodeName": "node3", "containers": [{"name": "main"}]},
    "status": {"phase": "Running", "startTime": "2026-04-22T02:15:43Z"},
}  # fmt: skip
_OBJECTS: Final[dict[str, Json]] = {
    "/apis": {"groups": [{"name": "batch", "versions": [{"version": "v1"}], "preferredVersion": {"version": "v1"}}]},
    "/apis/batch/v1/namespaces/llm/jobs/train": _JOB,
    "/api/v1/namespaces/llm/pods/train-0": _POD_OF_JOB,
    "/api/v1/pods": {"items": [_POD_OF_JOB]},
}
_POD: Final = "/api/v1/namespaces/llm/pods/{name}"
_ATTEMPT: Final = "/api/v1/attempts/{attempt_id}"
_THEN: Final = "at=2026-04-22T14:00:00Z"
_RANGE: Final = "since=2026-04-22T02:00:00Z&until=2026-04-22T02:30:00Z"
_HOURS: Final = "since=2026-04-22T00:00:00Z&until=2026-04-22T04:00:00Z"
REQUESTS: Final = {
    "getPodComparison": _POD + "/comparison?nodes=node3,node5",
    "getAttemptComparison": _ATTEMPT + "/comparison?with=6f97a54de6fbb9e27ee3a1dc8d608d38",
    "getAttempt": _ATTEMPT + "?detail=full&limit=2",
    "listSchedulerlogs": "/api/v1/schedulerlogs?namespace=llm",
    "listRefusals": "/api/v1/refusals?device=GPU-1",
    "listTrends": f"/api/v1/trends?{_HOURS}&interval=1h",
    "getReportsFailures": f"/api/v1/reports/failures?{_RANGE}",
    "listPodObservations": "/api/v1/namespaces/llm/pods/deepseek-0/observations",
    "getNode": "/api/v1/nodes/{node}?" + _THEN,
    "getRecording": f"/api/v1/recording?{_RANGE}",
    "getNodeOccupancy": "/api/v1/nodes/{node}/occupancy?" + _THEN,
}
"""Operation to the request whose answer is its example, where its path alone asks for nothing of the golden records."""
TEXTS: Final = {
    "listTrends.csv": f"/api/v1/trends?{_HOURS}&interval=1h&format=csv",
    "getReportsFailures.csv": f"/api/v1/reports/failures?{_RANGE}&format=csv",
    "listPending.csv": "/api/v1/pending?group_by=pod&format=csv",
    "getClusterFile.yaml": "/api/v1/cluster-file?" + _THEN,
    # Of the attempt the golden records have no state.
    "getAttemptClusterFile.yaml": "/api/v1/cluster-file?" + _THEN,
    "getMetrics.text": "/metrics",
}
"""Operation to the request, of answers that are texts."""
WATCHES: Final = {
    "getPodSchedulerlog.watch": _POD + "/schedulerlog",
    "listSchedulerlogs.watch": "/api/v1/schedulerlogs",
    "listPending.watch": "/api/v1/pending",
}
"""Operation to the request, of watches whose first event is the example."""
_SIMULATED: Final[dict[str, Any]] = {
    "node": None,
    "state": "refused",
    "nodes": 5,
    "fit_nodes": 0,
    "fitting": [],
    "filtered": [],
    "devices": [],
    "device_policy": "binpack",
    "policy_annotation": "",
    "notes": [],
    "pods": [],
}
"""Head of a simulation in which the golden pod fits none of its nodes."""
_COUNTED: Final[dict[str, Any]] = {
    "name": "deepseek",
    "wanted": 4,
    "starts": 3,
    "capacity": 3,
    "is_counted": True,
    "node_count": 2,
    "nodes": [{"node": "node3", "pods": 2}, {"node": "node5", "pods": 1}],
    "added": [],
    "sentence": {"en": "3 of 4 start now, on 2 nodes.", "zh": "4 个中有 3 个可以立即启动，分布在 2 个节点上。"},
    "change": None,
    "next_end": None,
    "to_add": [{"like": "node3", "models": ["NVIDIA A40"], "nodes": 1, "pods_each": 4}],
}
"""Pods of a shape, without the reason why the last one waits."""
_OF_AN_HOUR: Final = {"waited_seconds": 3600, "gpu_hours": 2.0}
"""Values of the golden pod, which asks for two devices."""
ERRORS: Final = {
    400: ("parameter limit: Input should be greater than or equal to 1", "GET /docs lists every path."),
    404: ("nothing is recorded of pod llm/deepseek-0", "Is the name right? kubectl -n llm get pod deepseek-0"),
    410: ("continue has expired: it is valid for 5 minutes after each page", "Search again, without continue."),
    413: ("the body is longer than 64 KiB", "Send one object of kind Pod as YAML or JSON."),
    503: ("OpenSearch does not answer, and the answer is not in memory", "Try again."),
}


def derive_requests(operations: Iterable[Described]) -> dict[str, str]:
    """Derive the example request of each operation that answers JSON, in the default cluster."""
    paths = {
        str(item.description["operationId"]): item.path
        for item in operations
        if item.method == "get" and "{cluster}" not in item.path
        if "application/json" in item.description["responses"]["200"]["content"]
    }
    requested = {name: path for name, path in paths.items() if name not in _OF_OBJECTS}
    return {name: REQUESTS.get(name, path).format(**_NAMES) for name, path in requested.items()}


async def collect_examples(operations: Iterable[Described]) -> dict[str, Any]:
    """Collect the example of each operation, and of each status of an error."""
    caller = Caller(answer_search)
    caller.remember(read_attempt())
    alert = read_alert()
    caller.publish(alert, evaluated_until=alert.changed_at)
    collected: dict[str, Any] = {}
    for operation, path in derive_requests(operations).items():
        answer = await caller.get(path)
        assert answer.status_code == 200, f"{operation}: {answer.text}"
        collected[operation] = answer.json()
        # The time of the request, where it asks for none.
        for name in {"at", "as_of"} & set(collected[operation]):
            if f"{name}=" not in path:
                collected[operation][name] = "2026-04-22T02:15:43.000000Z"
        _fix_times(collected[operation])
    collected[_WORKLOAD] = await _ask_for_workload()
    collected |= await _ask_for_plans()
    collected |= {name: _fix_text(name, (await caller.get(path)).text) for name, path in TEXTS.items()}
    events = await asyncio.gather(*(_read_first_event(caller, path.format(**_NAMES)) for path in WATCHES.values()))
    collected |= dict(zip(WATCHES, events, strict=True))
    # What is posted is answered with the same parts.
    parts = {"schedulerlog": "getAttempt", "diagnosis": "getPodDiagnosis", "suggestions": "listPodSuggestions"}
    collected["simulate"] = _SIMULATED | {name: collected[operation] for name, operation in parts.items()}
    collected["simulate"]["sentence"] = collected["getPodDiagnosis"]["sentence"]
    collected["simulate"]["suggestions"] = collected["simulate"]["suggestions"] | {"attempt": ""}
    collected["capacity"] = _COUNTED | {"obstacle": collected["getPodDiagnosis"]["sentence"]}
    collected["default"] = describe_problem(
        401, "the caller is unknown", "Send Authorization: Bearer TOKEN."
    ).model_dump()
    return collected | {str(status): describe_problem(status, *words).model_dump() for status, words in ERRORS.items()}


async def _ask_for_workload() -> Json:
    caller = Caller(answer_search, objects=FakeObjects(_OBJECTS))
    answer = await caller.get("/api/v1/namespaces/llm/workloads/job/train")
    assert answer.status_code == 200, answer.text
    document: Json = answer.json()
    return document | {"at": "2026-04-22T02:15:43.000000Z"}


async def _ask_for_plans() -> Json:
    """Ask for a drain, and for the moves after which a pod starts that needs a whole node."""
    nodes = [a_gpu_node("node3", 2), a_gpu_node("node5", 2)]
    pods = [a_replica("chat-0", "node3", {0: (9000, 0)}), a_replica("embed-0", "node5", {0: (9000, 0)})]
    tables = {"/api/v1/nodes": nodes, "/api/v1/pods": pods, BUDGETS.path: [a_budget("web", "web", 1)]}
    objects = {path: {"items": items, "metadata": {}} for path, items in tables.items()}
    caller = Caller(answer_search, objects=FakeObjects(objects))
    drain = await caller.get("/api/v1/nodes/node3/drain")
    moves = await caller.client.post("/api/v1/defragmentation", json=a_gpu_pod("train-0", gpu=2))
    # The index has the pods that queues and gates hold; of these objects nothing is held.
    caller = Caller(answer_nothing, objects=FakeObjects(objects))
    purchase = await caller.get("/api/v1/purchase")
    statuses = [answer.status_code for answer in (drain, moves, purchase)]
    assert statuses == [200, 200, 200], drain.text + moves.text + purchase.text
    return {_DRAIN: drain.json(), "defragmentation": moves.json(), _PURCHASE: purchase.json()}


def _fix_text(name: str, text: str) -> str:
    if name == "getMetrics.text":
        # The others are of this process.
        return "".join(line for line in text.splitlines(keepends=True) if PREFIX + "cached_pods" in line)
    # Hours and seconds of waiting grow with the time of the request.
    text = re.sub(r'("waiting",.*"gpu_hours",)[\d.]+', r"\g<1>2.0", text)
    return re.sub(r'(?<=Z",)\d+(,\d+,\d+,)[\d.]+', r"3600\g<1>2.0", text)


async def _read_first_event(caller: Caller, path: str) -> Any:
    answer = await caller.get(path + "?watch=true&timeoutSeconds=1")
    event = orjson.loads(answer.text.partition("\n")[0])
    _fix_times(event)
    return event


def _fix_times(answer: Any) -> None:
    """Set what grows with the time of the request to the values of an hour, in place."""
    if isinstance(answer, list):
        for element in answer:
            _fix_times(element)
    elif isinstance(answer, dict):
        answer |= {name: value for name, value in _OF_AN_HOUR.items() if answer.get(name) is not None}
        for member in answer.values():
            _fix_times(member)


_WAITS: Final = re.compile(rb'(waiting_seconds\\?"[:,] ?)\d{5,}')
"""Waits until now, in JSON and in CSV: two hours stand for the time since the golden records."""


def write_document() -> bytes:
    """Write the content of the file."""
    operations = [route.describe() for route in Caller().app.routes if isinstance(route, OperationRoute)]
    described = build_document(operations, asyncio.run(collect_examples(operations)))
    text = orjson.dumps(described, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    return _WAITS.sub(rb"\g<1>7200", text)


if __name__ == "__main__":
    FILE.write_bytes(write_document())
