"""Plans of the API on the objects of its own cluster: the same as on a file with these objects."""

import html
from typing import Any

import httpx
import orjson

from engine.capacity.drain import plan_drain
from engine.capacity.purchase import plan_purchase
from runtime.kubernetes.errors import KubeApiError
from schemas.events import Request
from tests.support.builders.capacity import SETTING, a_budget, a_holder, a_replica
from tests.support.builders.simulations import a_gpu_node, a_gpu_pod, build_described
from tests.support.fakes.objects import FakeObjects
from tests.support.harness.api_app import Caller
from tests.support.harness.index_filling import an_attempt

OBJECTS: list[dict[str, Any]] = [
    a_gpu_node("n1", 2), a_gpu_node("n2", 2), a_replica("a", "n1", {0: (9000, 0)}), a_holder("b", "n1", {1: (2000, 0)}),
    a_replica("c", "n2", {0: (9000, 0)}, "db"), a_budget("web", "web", 0),
]  # fmt: skip
PATHS = {
    "Node": "/api/v1/nodes", "Pod": "/api/v1/pods", "PodDisruptionBudget": "/apis/policy/v1/poddisruptionbudgets",
}  # fmt: skip


def build_caller(*, is_connected: bool = True) -> Caller:
    tables: dict[str, Any] = {path: {"items": [], "metadata": {}} for path in PATHS.values()}
    for item in OBJECTS:
        tables[PATHS[item["kind"]]]["items"].append(item)
    return Caller(objects=FakeObjects(tables, is_connected=is_connected))


async def test_a_drain_is_the_plan_of_the_same_objects() -> None:
    answer = await build_caller().get("/api/v1/nodes/n1/drain")
    assert answer.status_code == 200, answer.text
    expected = plan_drain(build_described(*OBJECTS), "n1", SETTING)
    assert answer.json() == orjson.loads(expected.model_dump_json())
    assert [(pod["name"], pod["state"]) for pod in answer.json()["pods"]] == [("a", "blocked"), ("b", "moves")]


async def test_an_unknown_node_and_an_unread_cluster_are_errors_of_their_own() -> None:
    assert (await build_caller().get("/api/v1/nodes/n9/drain")).status_code == 404
    answer = await build_caller(is_connected=False).get("/api/v1/nodes/n1/drain")
    assert (answer.status_code, "`schedulerlog drain`" in answer.text) == (503, True)
    answer = await build_caller(is_connected=False).get("/api/v1/purchase")
    assert (answer.status_code, "`schedulerlog buy`" in answer.text) == (503, True)
    assert (await build_caller().get("/api/v1/clusters/other/nodes/n1/drain")).status_code == 503


async def test_pods_that_may_not_be_listed_are_named() -> None:
    objects = FakeObjects({"/api/v1/nodes": {"items": OBJECTS[:2], "metadata": {}}})
    objects.refused["/api/v1/pods"] = KubeApiError(403, "forbidden")
    answer = await Caller(objects=objects).get("/api/v1/nodes/n1/drain")
    assert (answer.status_code, "could not list all of Pod" in answer.text) == (503, True)


async def post(pod: dict[str, Any], query: str = "") -> httpx.Response:
    return await build_caller().client.post(f"/api/v1/defragmentation{query}", json=pod)


async def test_moves_respect_the_budgets() -> None:
    answer = await post(a_gpu_pod("wide", gpu=2))
    assert answer.status_code == 200, answer.text
    plan = answer.json()
    # n1 is kept by the budget of `a`, and nothing makes `b` again.
    assert [(move["name"], move["node"]) for opened in plan["nodes"] for move in opened["moves"]] == [("c", "n1")]
    assert (plan["is_fewest"], plan["has_budgets"]) == (True, True)


async def test_a_wrong_count_is_a_mistake() -> None:
    assert (await post(a_gpu_pod("wide", gpu=2), "?count=51")).status_code == 400


async def test_a_purchase_is_the_plan_of_the_same_objects_without_pods_that_a_gate_holds() -> None:
    answer = await build_caller().get("/api/v1/purchase")
    assert answer.status_code == 200, answer.text
    expected = plan_purchase(build_described(*OBJECTS), SETTING)
    assert answer.json() == orjson.loads(expected.model_dump_json())


async def test_plans_are_pages_with_the_sentences_and_commands_of_the_api() -> None:
    caller = build_caller()
    plan = (await caller.get("/api/v1/nodes/n1/drain")).json()
    for language in ("en", "zh"):
        text = html.unescape((await caller.get(f"/ui/nodes/n1/drain?lang={language}")).text).replace("\u00a0", " ")
        assert plan["sentence"][language] in text
        assert "\n".join(plan["commands"]) in text
    purchase = (await caller.get("/api/v1/purchase")).json()
    assert purchase["sentence"]["en"] in (await caller.get("/ui/purchase")).text


async def test_the_page_of_moves_has_the_plan_for_what_the_latest_attempt_requested() -> None:
    caller = build_caller()
    request = Request(container="main", vendor="NVIDIA", count=2, memory_percent=100)
    caller.remember(an_attempt("default/wide").model_copy(update={"requests": [request]}))
    for language, sentence in (("en", "It starts after 1 pod has moved."), ("zh", "移动 1 个 Pod 之后即可启动。")):
        text = html.unescape((await caller.get(f"/ui/pods/default/wide/moves?lang={language}")).text)
        assert sentence in text.replace("\u00a0", " ").replace("\u2060", "")
        # The budget keeps `a`, and nothing makes `b` again: `c` leaves n2 for n1.
        assert "kubectl cordon n2" in text
        assert f'href="/ui/pods/default/c?lang={language}"' in text
        assert f'href="/ui/nodes/n1?lang={language}"' in text
        # The title leads back to the pod.
        assert f'href="/ui/pods/default/wide?lang={language}"' in text.partition("</h1>")[0]


async def test_a_pod_that_does_not_exist_has_no_changes_to_show() -> None:
    for caller, has_changes in ((build_caller(), False), (build_caller(is_connected=False), True)):
        caller.remember(an_attempt("default/gone"))
        assert ('id="changes"' in (await caller.get("/ui/pods/default/gone")).text) == has_changes
