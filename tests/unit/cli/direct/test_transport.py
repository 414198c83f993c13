"""Answers from a cluster's objects, by an API server that refuses what its user may not read."""

import json

import pytest

from cli.client.fallback import FallbackTransport
from cli.client.kubectl import INSTALL, parse_kubectl_problem
from cli.client.problems import NotAllowed, NotFound, Problem, Unreachable, WrongRequest
from cli.client.transport import WatchedChange
from cli.direct.reader import ObjectReader
from cli.direct.transport import DirectTransport
from tests.support.builders.cluster import a_pod
from tests.support.builders.simulations import a_gpu_node, a_gpu_pod
from tests.support.fakes.small_cluster import DIAGNOSIS, OBJECTS, POD, SmallCluster

CONFIG_MAP = "/api/v1/namespaces/default/configmaps/ours"
SHARING = {"SCHEDULERLOG_SCHEDULER_SHARE_NODES_WITH": "another"}


def create_transport(server: SmallCluster, notes: list[str]) -> DirectTransport:
    return DirectTransport(ObjectReader(server.fetch), lambda: "ml", notes.append)


def test_a_pod_is_diagnosed_on_all_pages_of_nodes() -> None:
    notes: list[str] = []
    answer = create_transport(SmallCluster(), notes).get(DIAGNOSIS)
    assert isinstance(answer, dict)
    assert (answer["namespace"], answer["name"]) == ("ml", "train-0")
    nodes = {node for obstacle in [answer["obstacle"], *answer["other_obstacles"]] for node in obstacle["nodes"]}
    assert nodes <= {"n0", "n1", "n2"}
    assert len(notes) == 1
    assert "may not read" not in notes[0]


def test_what_the_user_may_not_read_is_named_with_what_it_would_add() -> None:
    notes: list[str] = []
    answer = create_transport(SmallCluster("/api/v1/nodes", "/api/v1/pods"), notes).get(DIAGNOSIS)
    assert isinstance(answer, dict)
    assert "You may not read: Node, Pod" in notes[0]
    assert "which node or device refuses the pod" in notes[0]
    assert {"nodes"} <= {fact["subject"] for fact in answer["not_known"]}


def test_a_pod_that_does_not_exist_has_similar_names() -> None:
    answer = create_transport(SmallCluster(), []).get("/namespaces/ml/pods/trian-0/diagnosis")
    assert isinstance(answer, NotFound)
    assert "ml/train-0" in answer.next_step


def test_a_pod_that_may_not_be_read_is_a_problem() -> None:
    answer = create_transport(SmallCluster("/api/v1/namespaces/ml/pods/train-0"), []).get(DIAGNOSIS)
    assert isinstance(answer, Problem)


@pytest.mark.parametrize("path", ["/trends", "/namespaces/ml/pods/train-0/schedulerlog"])
def test_answers_of_records_need_the_api(path: str) -> None:
    answer = create_transport(SmallCluster(), []).get(path)
    assert isinstance(answer, Unreachable)
    assert answer.next_step == INSTALL


def test_the_cluster_is_asked_itself_only_where_the_api_is_not_installed() -> None:
    missing = parse_kubectl_problem("Error from server (NotFound): the server could not find the requested resource")
    assert missing.next_step == INSTALL
    server = SmallCluster()

    class Missing(DirectTransport):
        def get(self, path: str, query: object = None) -> Problem:
            return missing

    first = Missing(ObjectReader(server.fetch), lambda: "ml", print)
    fallback = FallbackTransport(first, lambda: True, lambda: create_transport(server, []))
    assert isinstance(fallback.get(DIAGNOSIS), dict)
    assert server.paths


@pytest.mark.parametrize(("has_api", "answers"), [(False, True), (True, False)])
def test_a_refusal_counts_only_where_the_api_is_installed(has_api: bool, answers: bool) -> None:
    refusal = parse_kubectl_problem('Error from server (Forbidden): pods.schedulerlog.io "p" is forbidden')
    server = SmallCluster()

    class Refusing(DirectTransport):
        def get(self, path: str, query: object = None) -> Problem:
            return refusal

    first = Refusing(ObjectReader(server.fetch), lambda: "ml", print)
    fallback = FallbackTransport(first, lambda: has_api, lambda: create_transport(server, []))
    assert isinstance(fallback.get(DIAGNOSIS), dict) == answers


def test_a_pod_is_simulated_on_the_cluster_as_it_is() -> None:
    notes: list[str] = []
    answer = create_transport(SmallCluster(), notes).post("/simulate", json.dumps({"kind": "Pod", **POD}).encode())
    assert isinstance(answer, dict)
    assert (answer["state"], answer["nodes"], answer["fit_nodes"]) == ("refused", 3, 0)
    assert "cpu" in answer["sentence"]["en"]
    assert len(notes) == 1


@pytest.mark.parametrize(("refused", "node"), [((), "theirs"), ((CONFIG_MAP,), None)])
def test_settings_of_our_scheduler_are_read_from_its_config_map(
    monkeypatch: pytest.MonkeyPatch, refused: tuple[str, ...], node: str | None
) -> None:
    """One that the user may not read leaves the scheduler its defaults."""
    scheduler = a_pod("scheduler")
    source = {"configMapRef": {"name": "ours"}}
    scheduler["spec"]["containers"] = [{"name": "s", "args": ["scheduler", "serve"], "envFrom": [source]}]
    held = a_gpu_pod("held", gpu=1, gpumem=3000, gpucores=10)
    allocated = {"hami.io/vgpu-node": "theirs", "hami.io/vgpu-devices-allocated": "GPU-theirs-0,NVIDIA,3000,10:;"}
    held["metadata"] |= {"annotations": allocated}
    held["spec"] |= {"schedulerName": "another", "nodeName": "theirs"}
    monkeypatch.setitem(OBJECTS, "/api/v1/pods", [scheduler, held])
    monkeypatch.setitem(OBJECTS, "/api/v1/nodes", [a_gpu_node("theirs")])
    monkeypatch.setitem(OBJECTS, CONFIG_MAP, {"metadata": {"namespace": "default", "name": "ours"}, "data": SHARING})
    pod = a_gpu_pod("new", gpu=1, gpumem=1000)
    pod["spec"]["schedulerName"] = "hami-scheduler"
    answer = create_transport(SmallCluster(*refused), []).post("/simulate", json.dumps(pod).encode())
    assert isinstance(answer, dict)
    assert answer["node"] == node


def test_pods_that_start_are_counted_on_the_cluster_as_it_is() -> None:
    container = {"name": "c", "resources": {"requests": {"cpu": "2"}}}
    body = json.dumps({"kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": [container]}}).encode()
    query = {"count": "7", "add_node": "like:n0=1"}
    answer = create_transport(SmallCluster(), []).post("/capacity", body, query)
    assert isinstance(answer, dict)
    # Four nodes of 4 CPU take two pods each.
    assert (answer["starts"], answer["capacity"], answer["node_count"]) == (7, 8, 4)
    refused = create_transport(SmallCluster("/api/v1/nodes"), []).post("/capacity", body, query)
    assert isinstance(refused, NotAllowed)
    wrong = create_transport(SmallCluster(), []).post("/capacity", body, {"add_node": "like:n9"})
    assert isinstance(wrong, WrongRequest)


def test_a_drain_is_planned_with_the_right_to_list_nodes_and_pods() -> None:
    plan = create_transport(SmallCluster(), []).get("/nodes/n0/drain")
    assert isinstance(plan, dict)
    assert (plan["sentence"]["en"], plan["pods"]) == ("A drain of n0 moves no pod.", [])
    assert isinstance(create_transport(SmallCluster(), []).get("/nodes/n9/drain"), NotFound)
    assert isinstance(create_transport(SmallCluster("/api/v1/pods"), []).get("/nodes/n0/drain"), NotAllowed)


def test_what_would_help_is_worked_out_on_the_objects() -> None:
    transport = create_transport(SmallCluster(), [])
    answer = transport.get("/namespaces/ml/pods/train-0/suggestions")
    assert isinstance(answer, dict)
    assert answer["state"] == "refused"
    assert any("cpu" in item["sentence"]["en"] for item in answer["items"])


def test_pods_cannot_be_simulated_without_the_right_to_list_nodes() -> None:
    answer = create_transport(SmallCluster("/api/v1/nodes"), []).post(
        "/simulate", json.dumps({"kind": "Pod", **POD}).encode()
    )
    assert isinstance(answer, Problem)
    assert "can-i list nodes" in answer.next_step


def test_waiting_pods_are_listed_with_their_obstacle() -> None:
    answer = create_transport(SmallCluster(), []).get("/pending", {"namespace": "", "group_by": "pod", "limit": "50"})
    assert isinstance(answer, dict)
    (item,) = answer["items"]
    assert (item["namespace"], item["name"], item["obstacle"]["code"]) == ("ml", "train-0", "ResourceNeverEnough")
    code = answer["items"][0]["obstacle"]["code"]
    decided = create_transport(SmallCluster(), []).get("/pending", {"group_by": "pod", "limit": "1", "obstacle": code})
    assert not isinstance(decided, Problem)
    # It may have waited a second longer by then.
    (listed,) = decided["items"]
    assert {**listed, "waited_seconds": 0} == {**item, "waited_seconds": 0}
    other = create_transport(SmallCluster(), []).get("/pending", {"group_by": "pod", "obstacle": "CardCordoned"})
    assert not isinstance(other, Problem)
    assert (other["total"], other["items"]) == (0, [])
    grouped = create_transport(SmallCluster(), []).get("/pending", {"group_by": "obstacle"})
    assert isinstance(grouped, dict)
    assert [(row["obstacle"]["code"], row["pods"]) for row in grouped["items"]] == [("ResourceNeverEnough", 1)]
    searched = create_transport(SmallCluster(), []).get("/pending", {"since": "2h"})
    assert isinstance(searched, Unreachable)


def test_each_diagnosis_reads_the_cluster_again_and_its_suggestions_do_not() -> None:
    server = SmallCluster()
    transport = create_transport(server, [])
    transport.get(DIAGNOSIS)
    reads = len(server.paths)
    transport.get("/namespaces/ml/pods/train-0/suggestions")
    assert len(server.paths) == reads
    transport.get(DIAGNOSIS)
    assert len(server.paths) == 2 * reads


def test_a_diagnosis_has_the_verdict_on_each_node_and_the_time_line() -> None:
    answer = create_transport(SmallCluster(), []).get(DIAGNOSIS)
    assert isinstance(answer, dict)
    reasons = {node["name"]: node["containers"][0]["reason"] for node in answer["nodes"]}
    assert reasons == dict.fromkeys(("n0", "n1", "n2"), "Insufficient cpu")
    assert [moment["event"] for moment in answer["timeline"]] == ["owner created", "created"]


def test_a_job_is_answered_by_its_pods() -> None:
    transport = create_transport(SmallCluster(), [])
    answer = transport.get("/namespaces/ml/workloads/job/train")
    assert isinstance(answer, dict)
    assert (answer["kind"], answer["state"], answer["waiting"]) == ("Job.batch", "waiting", 1)
    (group,) = answer["groups"]
    assert (group["pods"], group["obstacle"]["code"]) == (["train-0"], "ResourceNeverEnough")
    # What would help is worked out on what was read already.
    assert isinstance(transport.get("/namespaces/ml/pods/train-0/suggestions"), dict)


def test_a_job_that_does_not_exist_has_similar_names() -> None:
    answer = create_transport(SmallCluster(), []).get("/namespaces/ml/workloads/job/trian")
    assert isinstance(answer, NotFound)
    assert "ml/train" in answer.next_step


@pytest.mark.parametrize("word", ["vcjob", "deployment"])
def test_a_kind_that_the_cluster_does_not_have_is_named(word: str) -> None:
    answer = create_transport(SmallCluster(), []).get(f"/namespaces/ml/workloads/{word}/train")
    assert isinstance(answer, NotFound)
    assert word in answer.cause


def test_a_cluster_that_does_not_answer_is_not_one_without_the_kind() -> None:
    down = Unreachable("refused", "Is it up?")
    transport = DirectTransport(ObjectReader(lambda _: down), lambda: "ml", print)
    assert transport.get("/namespaces/ml/workloads/job/train") == down


def test_a_word_that_is_no_kind_is_a_mistake() -> None:
    answer = create_transport(SmallCluster(), []).get("/namespaces/ml/workloads/joob/train")
    assert isinstance(answer, WrongRequest)
    assert "job" in answer.next_step


def test_nodes_are_listed_and_described_from_one_reading() -> None:
    server = SmallCluster()
    transport = create_transport(server, [])
    listed = transport.get("/nodes", {"limit": "200"})
    assert isinstance(listed, dict)
    assert [item["node"] for item in listed["items"]] == ["n0", "n1", "n2"]
    occupancy = transport.get("/nodes/n1/occupancy")
    reads = len(server.paths)
    state = transport.get("/nodes/n1")
    assert isinstance(occupancy, dict)
    assert isinstance(state, dict)
    assert (occupancy["node"], state["node"]) == ("n1", "n1")
    assert len(server.paths) == reads
    missing = transport.get("/nodes/n9/occupancy")
    assert isinstance(missing, NotFound)
    assert "n1" in missing.next_step


def test_nodes_need_the_right_to_list_nodes_and_pods() -> None:
    answer = create_transport(SmallCluster("/api/v1/pods"), []).get("/nodes")
    assert isinstance(answer, NotAllowed)


def test_a_watch_of_a_pod_reads_the_cluster_again() -> None:
    server = SmallCluster()
    changes = create_transport(server, []).stream("/namespaces/ml/pods/train-0/schedulerlog", {})
    change = next(changes)
    assert isinstance(change, WatchedChange)
    assert change.object["metadata"] == {"namespace": "ml", "name": "train-0"}
    assert change.object["status"] == "failed"
