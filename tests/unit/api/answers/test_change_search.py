"""What the API reads before it asks the fit: what nodes last registered, and whether a lock is still there."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import orjson

from schemas.codec.records import encode_value
from schemas.documents.node_states import build_node_state_document
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


def wanting(memory_mib: int, *nodes: str, **fields: Any) -> AttemptSummarized:
    asked = [Request(container="main", vendor="NVIDIA", count=1, memory_mib=memory_mib)]
    attempt = an_attempt("llm/want", started_at=NOW - timedelta(minutes=1), nodes=list(nodes))
    return attempt.model_copy(update={"requests": asked, "constraints": {}} | fields)


def caller_of(attempt: AttemptSummarized, *states: NodeStateChanged, **settings: Any) -> Caller:
    caller = Caller(**settings)
    caller.remember(attempt)
    for state in states:
        caller.app.state.devices.take(state)
    caller.app.state.devices.is_caught_up = True
    return caller


async def suggestions(caller: Caller) -> dict[str, Any]:
    answer = await caller.get("/api/v1/namespaces/llm/pods/want/suggestions")
    found: dict[str, Any] = answer.json()
    assert answer.status_code == 200, found
    return found


def constraints(found: dict[str, Any]) -> list[str]:
    return [edit["constraint"] for item in found["items"] for edit in item["edits"]]


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
        found: dict[str, Any] = {"hits": {"total": {"value": 0}, "hits": []}, "aggregations": {}, "docs": []}
        if "node-states" in request.url.path:
            source = build_node_state_document(self.state, self.state.observed_at)
            hit = {"_id": self.state.id, "_source": orjson.loads(encode_value(source))}
            found["aggregations"] = {"nodes": {"buckets": [{"key": "gone", "latest": {"hits": {"hits": [hit]}}}]}}
        if "occupancy" in request.url.path:
            source = orjson.loads(encode_value(build_placement_document(self.pod, {})))
            found["hits"] = {"total": {"value": 1}, "hits": [{"_id": self.pod.id, "_source": source}]}
        return httpx.Response(200, json=found)


async def test_a_node_that_is_not_registered_is_judged_as_the_index_has_it_and_with_pods_that_came_since() -> None:
    attempt = wanting(8_000, "full", "gone")
    full = a_state("full", used_mib=9_500)
    assert "registration" in constraints(await suggestions(caller_of(attempt, full, answering=Index())))
    # 4,000 MiB of the 10,000 are held by now: only less memory helps.
    held = await suggestions(caller_of(attempt, full, answering=Index(held_mib=4_000)))
    assert "registration" not in constraints(held)
    assert "memory" in constraints(held)


async def test_diagnosis_and_suggestions_count_the_missing_registration_among_what_keeps_the_pod_out() -> None:
    # With less memory or without the other pods it would fit on the full node, and as it is on the one that is gone.
    caller = caller_of(wanting(8_000, "full", "gone"), a_state("full", used_mib=9_500), answering=Index())
    together = ["registration", "use", "memory"]
    assert (await suggestions(caller))["excluded_by"] == together
    diagnosis = await caller.get("/api/v1/namespaces/llm/pods/want/diagnosis")
    assert diagnosis.json()["excluded_by"] == together


async def simulated(caller: Caller, memory_mib: int) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": memory_mib}
    pod = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "llm", "name": "new"},
        "spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]},
    }  # fmt: skip
    answer = await caller.client.post("/api/v1/simulate", json=pod)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def nodes_of(*names: str) -> FakeObjects:
    return FakeObjects({NODE: {"items": [{"metadata": {"name": name}} for name in names], "metadata": {}}})


def full_and_gone(objects: FakeObjects) -> Caller:
    states = (a_state("full", used_mib=9_500), a_state("gone", used_mib=0, minutes_ago=60))
    last = a_node_state("gone", 0, revision=2, observed_at=NOW - timedelta(minutes=50))
    return caller_of(wanting(1), *states, last, answering=Index(), objects=objects)


async def test_a_pod_that_does_not_exist_yet_is_offered_the_nodes_that_register_nothing_any_more() -> None:
    found = await simulated(full_and_gone(nodes_of("full", "gone", "cpu")), 8_000)
    assert found["node"] is None
    assert "registration" in constraints(found["suggestions"])
    assert found["suggestions"]["excluded_by"] == found["diagnosis"]["excluded_by"] == ["registration", "use", "memory"]


async def test_of_a_simulated_pod_that_fits_the_node_is_named_and_its_bind_is_not_asked_about() -> None:
    found = (await simulated(full_and_gone(nodes_of("full", "gone")), 500))["diagnosis"]
    assert found["sentence"]["en"] == "It would go to node full; it fits on 1 node."
    assert (found["state"], found["obstacle"], found["other_obstacles"]) == ("binding", None, [])
    assert not any("bound" in step["question"]["en"] for step in found["steps"])


async def test_a_node_that_has_left_the_cluster_is_not_offered() -> None:
    found = (await simulated(full_and_gone(nodes_of("full")), 8_000))["suggestions"]
    assert "registration" not in constraints(found)
    assert len(found["not_known"]) == 1


async def test_without_an_api_server_a_node_that_may_have_left_is_not_offered_and_the_answer_says_so() -> None:
    found = (await simulated(full_and_gone(FakeObjects(is_connected=False)), 8_000))["suggestions"]
    assert "registration" not in constraints(found)
    assert any("register no devices any more" in unknown["en"] for unknown in found["not_known"])


async def test_without_one_registered_node_there_is_an_answer() -> None:
    found = await suggestions(caller_of(wanting(8_000, "gone"), a_node_state("gone", 0), answering=Index()))
    assert (found["state"], constraints(found)) == ("refused", ["registration"])
    assert found["excluded_by"] == ["registration"]


async def test_with_the_index_down_it_is_named_what_could_not_be_known() -> None:
    found = await suggestions(
        caller_of(wanting(8_000, "full", "gone"), a_state("full", used_mib=9_500), answering=refuse)
    )
    assert constraints(found) == ["memory"]
    assert any(
        "last registrations of unregistered nodes are unknown" in unknown["en"] for unknown in found["not_known"]
    )


def locked_out() -> AttemptSummarized:
    held = LockHolder(pod="team-b/dead", locked_at=datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=3))
    error = "node n1 has been locked within 5m0s: node lock contention"
    bind = BindOutcome(node="n1", bound=False, error=error, ended_at=NOW - timedelta(minutes=1), lock_holder=held)
    return wanting(1_000, "n1", chosen="n1", bind=bind, fit_nodes=1)


def node_locked(since: datetime | None) -> FakeObjects:
    lock = {"hami.io/mutex.lock": f"{since:%Y-%m-%dT%H:%M:%SZ},team-b,dead"} if since else {}
    return FakeObjects({NODE: {"items": [{"metadata": {"name": "n1", "annotations": lock}}], "metadata": {}}})


async def test_a_lock_that_is_still_on_the_node_is_to_be_removed() -> None:
    attempt = locked_out()
    assert attempt.bind
    assert attempt.bind.lock_holder
    objects = node_locked(attempt.bind.lock_holder.locked_at)
    found = await suggestions(caller_of(attempt, a_state("n1", used_mib=0), objects=objects))
    (item,) = found["items"]
    assert found["state"] == "fits"
    assert item["edits"] == [{"constraint": "lock", "where": "n1", "before": "team-b/dead", "after": ""}]
    assert item["node"] == "n1"
    assert not any("locked" in unknown["en"] for unknown in found["not_known"])


async def test_a_lock_that_is_gone_or_another_one_is_not_named() -> None:
    for since in (None, NOW - timedelta(seconds=5)):
        found = await suggestions(caller_of(locked_out(), a_state("n1", used_mib=0), objects=node_locked(since)))
        assert (found["state"], found["items"]) == ("fits", [])


async def test_where_no_node_can_be_read_the_bind_that_failed_is_what_is_known() -> None:
    found = await suggestions(
        caller_of(locked_out(), a_state("n1", used_mib=0), objects=FakeObjects(is_connected=False))
    )
    assert constraints(found) == ["lock"]
    assert any("known of a bind that failed" in unknown["en"] for unknown in found["not_known"])


async def test_who_may_not_read_the_pod_that_left_the_lock_does_not_see_its_name() -> None:
    api = Guarded()
    api.remember(locked_out())
    api.app.state.devices.take(a_state("n1", used_mib=0))
    api.app.state.devices.is_caught_up = True
    path = "/api/v1/namespaces/llm/pods/want/suggestions"
    alice = api.reviews.build_header("alice", READS_LLM)
    whole = api.reviews.build_header("all", Grant("all", "get", "pods"), Grant("all", "list", "pods"))
    texts = [(await api.client.get(path, headers=header)).text for header in (alice, whole)]
    assert ["team-b" in text for text in texts] == [False, True]
    assert "a pod of another namespace" in texts[0]
    assert "其他命名空间的 Pod 的绑定遗留的锁" in texts[0]
