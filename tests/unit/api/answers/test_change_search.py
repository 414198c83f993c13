"""Inputs that the API reads before the fit: the last registrations of nodes, and the locks that still exist."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import orjson

from schemas.codec.records import encode_value
from schemas.documents.devices import build_node_state_document
from schemas.documents.placements import build_placement_document
from schemas.events import (
    AttemptSummarized,
    BindOutcome,
    DeviceAllocation,
    DeviceKind,
    LockHolder,
    NodeStateChanged,
    PodRef,
    Request,
)
from schemas.placements import PodPlacement
from tests.support.builders.node_states import a_node_state
from tests.support.fakes.objects import FakeObjects
from tests.support.fakes.reviews import Grant
from tests.support.harness.api_app import Caller, refuse
from tests.support.harness.guarded_api import READS_LLM, Guarded
from tests.support.harness.index_filling import an_attempt

NOW = datetime.now(UTC).replace(microsecond=0)
NODE = "/api/v1/nodes"
KIND = DeviceKind(
    model="NVIDIA A100", vendor="NVIDIA", mode="hami-core", memory_mib=10_000, cores_percent=100, slots=10
)


def a_state(node: str, used_mib: int, minutes_ago: float = 5) -> NodeStateChanged:
    return a_node_state(
        node, 1, kinds=[KIND], memory_used_mib=[used_mib], cores_used_percent=[0], slots_used=[1],
        observed_at=NOW - timedelta(minutes=minutes_ago),
    )  # fmt: skip


def an_attempt_wanting(memory_mib: int, *nodes: str, **fields: Any) -> AttemptSummarized:
    requests = [Request(container="main", vendor="NVIDIA", count=1, memory_mib=memory_mib)]
    attempt = an_attempt("llm/want", started_at=NOW - timedelta(minutes=1), nodes=list(nodes))
    return attempt.model_copy(update={"requests": requests, "constraints": {}} | fields)


def build_caller(attempt: AttemptSummarized, *states: NodeStateChanged, **settings: Any) -> Caller:
    caller = Caller(**settings)
    caller.remember(attempt)
    for state in states:
        caller.app.state.devices.take(state, state.observed_at)
    caller.app.state.devices.is_caught_up = True
    return caller


async def fetch_suggestions(caller: Caller) -> dict[str, Any]:
    answer = await caller.get("/api/v1/namespaces/llm/pods/want/suggestions")
    suggestions: dict[str, Any] = answer.json()
    assert answer.status_code == 200, suggestions
    return suggestions


def list_constraints(suggestions: dict[str, Any]) -> list[str]:
    return [edit["constraint"] for item in suggestions["items"] for edit in item["edits"]]


class Index:
    """Finds the state of an hour ago of ``gone``, and a pod that began there since."""

    def __init__(self, held_mib: int = 0) -> None:
        self.state = a_state("gone", used_mib=0, minutes_ago=60)
        held = DeviceAllocation(uuid=self.state.uuid[0], container="main", memory_mib=held_mib, cores_percent=0)
        self.pod = PodPlacement(
            cluster="default", id="p", pod=PodRef(namespace="team-b", name="new", uid="u-new"), node="gone",
            started_at=NOW - timedelta(minutes=30), allocations=[held] if held_mib else [],
        )  # fmt: skip

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body: dict[str, Any] = {"hits": {"total": {"value": 0}, "hits": []}, "aggregations": {}, "docs": []}
        if "node-states" in request.url.path:
            source = build_node_state_document(self.state, self.state.observed_at)
            hit = {"_id": self.state.id, "_source": orjson.loads(encode_value(source))}
            body["aggregations"] = {"nodes": {"buckets": [{"key": "gone", "latest": {"hits": {"hits": [hit]}}}]}}
        if "occupancy" in request.url.path:
            source = orjson.loads(encode_value(build_placement_document(self.pod, {})))
            body["hits"] = {"total": {"value": 1}, "hits": [{"_id": self.pod.id, "_source": source}]}
        return httpx.Response(200, json=body)


async def test_a_node_that_is_not_registered_is_judged_as_the_index_has_it_and_with_pods_that_came_since() -> None:
    attempt = an_attempt_wanting(8_000, "full", "gone")
    full = a_state("full", used_mib=9_500)
    assert "registration" in list_constraints(await fetch_suggestions(build_caller(attempt, full, answering=Index())))
    # 4,000 MiB of the 10,000 are held by now: only less memory helps.
    held = await fetch_suggestions(build_caller(attempt, full, answering=Index(held_mib=4_000)))
    assert "registration" not in list_constraints(held)
    assert "memory" in list_constraints(held)


async def test_a_device_that_becomes_free_while_the_index_is_asked_is_judged_as_it_is_then() -> None:
    caller: Caller

    def free_device(request: httpx.Request) -> httpx.Response:
        freed = a_state("n7", used_mib=0, minutes_ago=0).model_copy(update={"revision": 2})
        caller.app.state.devices.take(freed, freed.observed_at)
        return Index()(request)

    # So many nodes that the checks of single devices are remembered from one trial to the next.
    full = [a_state(f"n{number}", used_mib=9_500) for number in range(600)]
    attempt = an_attempt_wanting(8_000, *(state.node for state in full))
    caller = build_caller(attempt, *full, answering=free_device)
    suggestions = await fetch_suggestions(caller)
    assert (suggestions["state"], suggestions["items"]) == ("fits", [])


async def test_diagnosis_and_suggestions_count_the_missing_registration_among_what_keeps_the_pod_out() -> None:
    # With less memory or without the other pods it would fit on the full node, and as it is on the one that is gone.
    caller = build_caller(an_attempt_wanting(8_000, "full", "gone"), a_state("full", used_mib=9_500), answering=Index())
    together = ["registration", "use", "memory"]
    assert (await fetch_suggestions(caller))["excluded_by"] == together
    diagnosis = await caller.get("/api/v1/namespaces/llm/pods/want/diagnosis")
    assert diagnosis.json()["excluded_by"] == together


async def simulate(caller: Caller, memory_mib: int) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": memory_mib}
    pod = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "llm", "name": "new"},
        "spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]},
    }  # fmt: skip
    answer = await caller.client.post("/api/v1/simulate", json=pod)
    assert answer.status_code == 200, answer.text
    simulation: dict[str, Any] = answer.json()
    return simulation


def build_nodes(*names: str) -> FakeObjects:
    return FakeObjects({NODE: {"items": [{"metadata": {"name": name}} for name in names], "metadata": {}}})


def a_caller_with_full_and_deleted_nodes(objects: FakeObjects) -> Caller:
    states = (a_state("full", used_mib=9_500), a_state("gone", used_mib=0, minutes_ago=60))
    last = a_node_state("gone", 0, revision=2, observed_at=NOW - timedelta(minutes=50))
    return build_caller(an_attempt_wanting(1), *states, last, answering=Index(), objects=objects)


async def test_a_pod_that_does_not_exist_yet_is_offered_the_nodes_that_register_nothing_any_more() -> None:
    simulation = await simulate(a_caller_with_full_and_deleted_nodes(build_nodes("full", "gone", "cpu")), 8_000)
    assert simulation["node"] is None
    assert "registration" in list_constraints(simulation["suggestions"])
    assert (
        simulation["suggestions"]["excluded_by"]
        == simulation["diagnosis"]["excluded_by"]
        == ["registration", "use", "memory"]
    )


async def test_of_a_simulated_pod_that_fits_the_node_is_named_and_its_bind_is_not_asked_about() -> None:
    diagnosis = (await simulate(a_caller_with_full_and_deleted_nodes(build_nodes("full", "gone")), 500))["diagnosis"]
    assert diagnosis["sentence"]["en"] == "It would go to node full; it fits on 1 node."
    assert (diagnosis["state"], diagnosis["obstacle"], diagnosis["other_obstacles"]) == ("binding", None, [])
    assert not any("bound" in step["question"]["en"] for step in diagnosis["steps"])


async def test_a_node_that_has_left_the_cluster_is_not_offered() -> None:
    suggestions = (await simulate(a_caller_with_full_and_deleted_nodes(build_nodes("full")), 8_000))["suggestions"]
    assert "registration" not in list_constraints(suggestions)
    assert suggestions["not_known"] == []


async def test_without_an_api_server_a_node_that_may_have_left_is_not_offered_and_the_answer_says_so() -> None:
    suggestions = (await simulate(a_caller_with_full_and_deleted_nodes(FakeObjects(is_connected=False)), 8_000))[
        "suggestions"
    ]
    assert "registration" not in list_constraints(suggestions)
    assert any("register no devices any more" in unknown["en"] for unknown in suggestions["not_known"])


async def test_without_one_registered_node_there_is_an_answer() -> None:
    suggestions = await fetch_suggestions(
        build_caller(an_attempt_wanting(8_000, "gone"), a_node_state("gone", 0), answering=Index())
    )
    assert (suggestions["state"], list_constraints(suggestions)) == ("refused", ["registration"])
    assert suggestions["excluded_by"] == ["registration"]


async def test_with_the_index_down_it_is_named_what_could_not_be_known() -> None:
    suggestions = await fetch_suggestions(
        build_caller(an_attempt_wanting(8_000, "full", "gone"), a_state("full", used_mib=9_500), answering=refuse)
    )
    assert list_constraints(suggestions) == ["memory"]
    assert any(
        "last registrations of unregistered nodes are unknown" in unknown["en"] for unknown in suggestions["not_known"]
    )


def a_locked_out_attempt() -> AttemptSummarized:
    held = LockHolder(pod="team-b/dead", locked_at=datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=3))
    error = "node n1 has been locked within 5m0s: node lock contention"
    bind = BindOutcome(node="n1", bound=False, error=error, ended_at=NOW - timedelta(minutes=1), lock_holder=held)
    return an_attempt_wanting(1_000, "n1", chosen="n1", bind=bind, fit_nodes=1)


def build_locked_node(since: datetime | None) -> FakeObjects:
    lock = {"hami.io/mutex.lock": f"{since:%Y-%m-%dT%H:%M:%SZ},team-b,dead"} if since else {}
    return FakeObjects({NODE: {"items": [{"metadata": {"name": "n1", "annotations": lock}}], "metadata": {}}})


async def test_a_lock_that_is_still_on_the_node_is_to_be_removed() -> None:
    attempt = a_locked_out_attempt()
    assert attempt.bind
    assert attempt.bind.lock_holder
    objects = build_locked_node(attempt.bind.lock_holder.locked_at)
    suggestions = await fetch_suggestions(build_caller(attempt, a_state("n1", used_mib=0), objects=objects))
    (item,) = suggestions["items"]
    assert suggestions["state"] == "fits"
    assert item["edits"] == [{"constraint": "lock", "where": "n1", "before": "team-b/dead", "after": ""}]
    assert item["node"] == "n1"
    assert not any("locked" in unknown["en"] for unknown in suggestions["not_known"])


async def test_a_lock_that_is_gone_or_another_one_is_not_named() -> None:
    for since in (None, NOW - timedelta(seconds=5)):
        suggestions = await fetch_suggestions(
            build_caller(a_locked_out_attempt(), a_state("n1", used_mib=0), objects=build_locked_node(since))
        )
        assert (suggestions["state"], suggestions["items"]) == ("fits", [])


async def test_where_no_node_can_be_read_the_bind_that_failed_is_what_is_known() -> None:
    suggestions = await fetch_suggestions(
        build_caller(a_locked_out_attempt(), a_state("n1", used_mib=0), objects=FakeObjects(is_connected=False))
    )
    assert list_constraints(suggestions) == ["lock"]
    assert any(
        "A failed bind reported that the node is locked" in unknown["en"] for unknown in suggestions["not_known"]
    )


async def test_who_may_not_read_the_pod_that_left_the_lock_does_not_see_its_name() -> None:
    api = Guarded()
    api.remember(a_locked_out_attempt())
    freed = a_state("n1", used_mib=0)
    api.app.state.devices.take(freed, freed.observed_at)
    api.app.state.devices.is_caught_up = True
    path = "/api/v1/namespaces/llm/pods/want/suggestions"
    alice = api.reviews.build_header("alice", READS_LLM)
    everywhere = api.reviews.build_header("all", Grant("all", "get", "pods"), Grant("all", "list", "pods"))
    texts = [(await api.client.get(path, headers=header)).text for header in (alice, everywhere)]
    assert ["team-b" in text for text in texts] == [False, True]
    assert "a pod of another namespace" in texts[0]
    assert "其他命名空间的 Pod 的绑定遗留的锁" in texts[0]
