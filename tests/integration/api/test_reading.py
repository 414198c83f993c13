"""The API on a real topic and a real index that hold many attempts, some of other tests."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import httpx
import numpy as np

from schemas.events import AttemptSummarized, Owner, PodDescription, PodRef, Refusal, Report
from tests.support.builders.events import build_devices_judged
from tests.support.builders.node_states import build_states
from tests.support.harness.api_process import Served, serving
from tests.support.harness.index_filling import NOW, Filling, an_attempt, join_episode
from tests.support.waiting import until


def list_names(answer: httpx.Response) -> list[str]:
    return [node["name"] for node in answer.json()["filter"]["nodes"]]


def test_an_attempt_on_the_topic_is_answered_before_the_index_has_it(filling: Filling, api: Served) -> None:
    filling.publish(an_attempt("api-topic/a", chosen="node2", bound=True))
    assert until(lambda: api.get_schedulerlog("api-topic/a").status_code == 200)
    assert api.get_schedulerlog("api-topic/a").json() == {
        "status": "succeeded",
        "filter": {
            "status": "passed",
            "summary": "find fit node(node2), 1 nodes not fit, 1 nodes fit(node2:11.58)",
            "nodes": [
                {
                    "name": "node1",
                    "status": "failed",
                    "score": 0,
                    "containers": [{"name": "main", "status": "failed", "reason": "8/8 CardInsufficientMemory"}],
                },
                {
                    "name": "node2",
                    "status": "passed",
                    "score": 11.58,
                    "containers": [{"name": "main", "status": "passed"}],
                },
            ],
        },
        "bind": {"status": "passed", "summary": "Successfully binding node [node2] to api-topic/a"},
    }


def test_garbage_between_attempts_is_counted_and_passed_over(filling: Filling, api: Served) -> None:
    before = api.sum_metric("schedulerlog_api_topic_rejected_records_total")
    filling.publish(raw=[(b"api-topic/b", b"\xff\x00not json"), (b"api-topic/b", b"{}")])
    filling.publish(an_attempt("api-topic/b"))
    assert until(lambda: api.get_schedulerlog("api-topic/b").status_code == 200)
    assert api.sum_metric("schedulerlog_api_topic_rejected_records_total") == before + 2


def test_an_attempt_on_five_thousand_nodes_comes_whole(filling: Filling, api: Served) -> None:
    nodes = [f"gpu-node-{number:05d}.cluster.local" for number in range(5_000)]
    filling.publish(an_attempt("api-topic/large", nodes=nodes))
    assert until(lambda: api.get_schedulerlog("api-topic/large").status_code == 200)
    answer = api.get_schedulerlog("api-topic/large")
    assert list_names(answer) == nodes
    assert list_names(api.get(answer.request.url.path, limit="2", node="gpu-node-04999.cluster.local")) == nodes[-1:]


def test_an_api_started_later_replays_the_topic(filling: Filling, api: Served) -> None:
    filling.publish(*(an_attempt(f"api-replay/{number}", nodes=[f"node{number}"]) for number in range(40)))
    with serving(filling.bootstrap_servers, filling.url) as later:
        assert until(later.is_ready)
        for number in range(40):
            assert list_names(later.get_schedulerlog(f"api-replay/{number}")) == [f"node{number}"]
        assert later.sum_metric('schedulerlog_api_lookups_total{outcome="miss"}') == 0


def test_a_replay_is_bounded(filling: Filling, api: Served) -> None:
    filling.publish(*(an_attempt(f"api-bounded/{number}") for number in range(60)))
    with serving(filling.bootstrap_servers, filling.url, SCHEDULERLOG_API_REPLAYED_RECORDS="12") as bounded:
        assert until(bounded.is_ready)
        assert 0 < bounded.sum_metric("schedulerlog_api_topic_records_total") <= 12


def test_an_older_pod_comes_from_the_index_by_its_latest_attempt(filling: Filling, api: Served) -> None:
    tries = [
        an_attempt("api-older/a", started_at=NOW - timedelta(days=2, minutes=m), nodes=[f"n{m}"]) for m in (5, 1, 9)
    ]
    filling.index(*tries)
    assert list_names(api.get_schedulerlog("api-older/a")) == ["n1"]


def test_the_devices_of_a_named_node_come_with_the_full_detail(filling: Filling, api: Served) -> None:
    attempt = an_attempt("api-devices/a")
    fields: dict[str, Any] = {"attempt_id": attempt.attempt_id, "pod": attempt.pod, "started_at": attempt.started_at}
    filling.index(attempt)
    assert "no device records" in _fetch_full(api)["devices_note"]
    record = build_devices_judged(("node1", "node2"), per_node=3, **fields)
    filling.index_devices(record, build_devices_judged(("node9",), part=1, **fields))
    (state, _) = build_states(record)
    filling.index_states(state)
    answer = _fetch_full(api)
    devices = answer["devices"]
    assert [device["uuid"] for device in devices] == state.uuid[:3]
    assert {device["node"] for device in devices} == {"node1"}
    assert devices[0]["memory_used_mib"] == state.memory_used_mib[0]
    assert devices[0]["verdict"] == record.verdicts[record.verdict[0]]
    assert answer["devices_note"] == ""


def test_a_state_written_the_day_before_is_found_and_a_missing_one_is_noted(filling: Filling, api: Served) -> None:
    attempt = an_attempt("api-devices/b")
    fields: dict[str, Any] = {"attempt_id": attempt.attempt_id, "pod": attempt.pod, "started_at": attempt.started_at}
    filling.index(attempt)
    record = build_devices_judged(("node1", "node2"), per_node=3, revision=[2, 3], **fields)
    filling.index_devices(record)
    answer = _fetch_full(api, "b")
    assert [device["uuid"] for device in answer["devices"]] == ["", "", ""]
    assert [device["verdict"] for device in answer["devices"]] == [record.verdicts[code] for code in record.verdict[:3]]
    missing = f"default/hami-scheduler/node1/state/{record.epoch}/2"
    assert answer["devices_note"].endswith(f"past their retention): {missing}")
    filling.index_states(*build_states(record, observed_at=attempt.started_at - timedelta(days=1)))
    answer = _fetch_full(api, "b")
    assert [device["uuid"] for device in answer["devices"]] == ["GPU-node1-0", "GPU-node1-1", "GPU-node1-2"]
    assert answer["devices_note"] == ""


def _fetch_full(api: Served, pod: str = "a") -> dict[str, Any]:
    path = f"/api/v1/namespaces/api-devices/pods/{pod}/schedulerlog"
    answer: dict[str, Any] = api.get(path, detail="full", node="node1").json()
    return answer


def test_an_attempt_is_opened_by_its_id_or_by_that_of_a_report_after_others_have_followed(
    filling: Filling, api: Served
) -> None:
    first, second = (
        an_attempt("api-by-id/a", started_at=NOW - timedelta(hours=1, minutes=minutes), nodes=[f"n{minutes}"])
        for minutes in (9, 1)
    )
    report = Report(source="kube-events", attempt_id="5e" * 16, started_at=first.started_at)
    filling.index(first.model_copy(update={"reports": [*first.reports, report]}), second)
    (_, item) = api.get("/api/v1/schedulerlogs", namespace="api-by-id").json()["items"]
    assert item["attempt"] == f"/api/v1/attempts/{first.attempt_id}"
    for path in (item["attempt"], "/api/v1/attempts/" + "5e" * 16):
        assert list_names(api.get(path)) == ["n9"]
    (episode, _) = api.get_schedulerlog("api-by-id/a", "/history").json()["episodes"]
    assert list_names(api.get(episode["attempt"])) == ["n1"]
    assert api.get("/api/v1/attempts/" + "6f" * 16).status_code == 404


def test_nothing_of_one_cluster_is_answered_for_another(filling: Filling, api: Served) -> None:
    east, west = (
        an_attempt("api-clusters/same", nodes=[f"node-{cluster}"]).model_copy(
            update={"cluster": cluster, "attempt_id": name * 16}
        )
        for cluster, name in (("api-east", "ea"), ("api-west", "ae"))
    )
    filling.index(east, west)
    for cluster, attempt in (("api-east", east), ("api-west", west)):
        base = f"/api/v1/clusters/{cluster}"
        pod = base + "/namespaces/api-clusters/pods/same/schedulerlog"
        assert list_names(api.get(pod)) == [f"node-{cluster}"]
        assert len(api.get(pod + "/history").json()["episodes"]) == 1
        assert [item["attempt_id"] for item in api.get(base + "/schedulerlogs").json()["items"]] == [attempt.attempt_id]
        assert list_names(api.get(f"{base}/attempts/{attempt.attempt_id}")) == attempt.nodes
    assert api.get(f"/api/v1/clusters/api-east/attempts/{west.attempt_id}").status_code == 404
    assert api.get_schedulerlog("api-clusters/same").status_code == 404
    listed = {item["name"]: item["is_default"] for item in api.get("/api/v1/clusters").json()["items"]}
    assert (listed["api-east"], listed["api-west"], listed["default"]) == (False, False, True)


def test_a_search_finds_the_attempts_of_a_workload_a_queue_and_a_scheduler(filling: Filling, api: Served) -> None:
    train = PodDescription(owners=[Owner(kind="Job", name="train"), Owner(kind="PyTorchJob", name="big")], queue="blue")
    filling.index(
        an_attempt("api-owned/a").model_copy(update={"description": train}),
        an_attempt("api-owned/b").model_copy(update={"scheduler": "kai-scheduler"}),
    )

    def search_names(**query: str) -> list[str]:
        items = api.get("/api/v1/schedulerlogs", namespace="api-owned", **query).json()["items"]
        return [item["name"] for item in items]

    assert (
        search_names(workload="PyTorchJob/big")
        == search_names(queue="blue")
        == search_names(scheduler="hami-scheduler")
        == ["a"]
    )
    assert search_names(scheduler="kai-scheduler") == ["b"]
    assert search_names(workload="Job/train") == []


def test_a_search_counts_the_pods_of_a_job_as_one_line(filling: Filling, api: Served) -> None:
    train = PodDescription(owners=[Owner(kind="Job", name="train")])
    pods = [an_attempt(f"api-grouped/train-{number}", reason="NumaNotFit") for number in range(5)]
    filling.index(*(pod.model_copy(update={"description": train}) for pod in pods), an_attempt("api-grouped/alone"))
    query = {"namespace": "api-grouped", "limit": "2", "group_by": "workload"}
    first = api.get("/api/v1/schedulerlogs", **query).json()
    (line,) = first["workloads"]
    assert (line["namespace"], line["workload"], line["pods"], line["attempts"]) == ("api-grouped", "Job/train", 5, 5)
    assert line["reasons"] == {"NumaNotFit": 5}
    assert line["last_started_at"][:-1] == f"{max(pod.started_at for pod in pods):%Y-%m-%dT%H:%M:%S.%f}"[:-3]
    assert first["total"] == 6
    assert api.get("/api/v1/schedulerlogs", **query, **{"continue": first["continue"]}).json()["workloads"] is None
    assert api.get("/api/v1/schedulerlogs", namespace="api-grouped").json()["workloads"] is None


def test_refusals_are_found_and_counted_by_node_and_reason(filling: Filling, api: Served) -> None:
    """Refusals in one document an attempt: a node that refused for one reason is not one that refused for another's."""
    memory, numa = (
        Refusal(counts={"CardInsufficientMemory": 8}, devices=8),
        Refusal(counts={"NumaNotFit": 8}, devices=8),
    )
    nodes = ["n-node.1", "n-node11", "n-nodex1"]
    for number, refusal in enumerate(([0, 1, 1], [0, 0, 1], [1, 1, 1])):
        attempt = an_attempt(f"api-refusing/p{number}", nodes=nodes)
        filling.index(attempt.model_copy(update={"refusals": [memory, numa], "refusal": np.array(refusal)}))

    def search(**query: str) -> tuple[str, dict[str, tuple[int, int]]]:
        answer = api.get("/api/v1/schedulerlogs", namespace="api-refusing", group_by="node", **query)
        assert answer.status_code == 200, answer.text
        body = answer.json()
        names = "".join(sorted(item["name"] for item in body["items"]))
        assert body["workloads"] is None
        return names, {f"{node['node']} {node['reason']}": (node["attempts"], node["pods"]) for node in body["nodes"]}

    assert search(node="n-node.1", reason="CardInsufficientMemory") == (
        "p0p1",
        {"n-node.1 CardInsufficientMemory": (2, 2)},
    )
    assert search(node="n-nodex1", reason="CardInsufficientMemory") == ("", {}), "other nodes refused for it"
    assert search(node="n-node11")[1] == {"n-node11 NumaNotFit": (2, 2), "n-node11 CardInsufficientMemory": (1, 1)}
    assert search(reason="CardInsufficientMemory")[1] == {
        "n-node.1 CardInsufficientMemory": (2, 2),
        "n-node11 CardInsufficientMemory": (1, 1),
    }
    assert len(search()[1]) == 5


def test_a_search_narrows_by_every_field(filling: Filling, api: Served) -> None:
    day = timedelta(days=1)
    filling.index(
        an_attempt("api-search/a", started_at=NOW - day, reason="NumaNotFit", nodes=["node1", "s-node7"]),
        an_attempt("api-search/b", started_at=NOW - 2 * day, chosen="node1", bound=True, devices=["GPU-s-1"]),
        an_attempt("api-search/c", started_at=NOW - 3 * day, chosen="node2", bound=False),
        an_attempt("api-search/d", started_at=NOW - 4 * day, chosen="node2"),
    )

    def search_names(**query: str) -> str:
        answer = api.get("/api/v1/schedulerlogs", namespace="api-search", **query).json()
        assert answer["total"] == len(answer["items"])
        return "".join(item["name"] for item in answer["items"])

    assert search_names() == "abcd"
    assert search_names(pod="b") == "b"
    assert search_names(node="s-node7") == "a"
    assert search_names(reason="NumaNotFit") == "a"
    assert search_names(status="failed") == "ac"
    assert search_names(status="pending") == "d"
    assert search_names(device="GPU-s-1") == "b"
    assert search_names(since="36h") == "a"
    assert search_names(until="36h") == "bcd"
    assert search_names(since=(NOW - 3 * day).isoformat(), until=(NOW - day).isoformat()) == "bc"
    assert search_names(q="locked within") == "c"
    assert search_names(q='locked "; } OR *') == ""
    lines = {
        item["name"]: item["summary"]
        for item in api.get("/api/v1/schedulerlogs", namespace="api-search").json()["items"]
    }
    assert lines == {
        "a": "no available node, 2 nodes do not meet",
        "b": "Successfully binding node [node1] to api-search/b",
        "c": "node node2 has been locked within 5m0s: node lock contention",
        "d": "find fit node(node2), 1 nodes not fit, 1 nodes fit(node2:11.58)",
    }


def test_a_search_is_paged_through_while_attempts_are_written(filling: Filling, api: Served) -> None:
    # Twelve attempts share each millisecond, so pages end between attempts that only their ids tell apart.
    pods = [(f"api-paged/p{n}", NOW - timedelta(hours=9, milliseconds=n // 12)) for n in range(1_250)]
    filling.index(*(an_attempt(pod, started_at=started, nodes=["node1"]) for pod, started in pods))
    seen: list[str] = []
    query = {"namespace": "api-paged", "limit": "200"}
    for page in range(20):
        answer = api.get("/api/v1/schedulerlogs", **query)
        assert answer.status_code == 200, answer.text
        assert (answer.json()["continue"] is not None) == ("next" in answer.links)
        seen += [item["name"] for item in answer.json()["items"]]
        filling.index(
            an_attempt(f"api-paged/new{page}", nodes=["node1"]),
            an_attempt(f"api-paged/late{page}", started_at=NOW - timedelta(hours=9, microseconds=50 * page)),
            an_attempt(pods[page][0], started_at=pods[page][1], chosen="node1", nodes=["node1"], bound=True),
        )
        if answer.json()["continue"] is None:
            break
        query["continue"] = answer.json()["continue"]
    assert len(seen) == len(set(seen))
    assert {name for name in seen if name.startswith("p")} == {f"p{n}" for n in range(1_250)}
    assert not [name for name in seen if name.startswith("new")]


def test_h9_readers_who_page_side_by_side_do_not_block_each_other(filling: Filling, api: Served) -> None:
    """An OpenSearch node allows 300 open contexts: 60 readers of six daily indices would need 360."""
    days = [NOW - timedelta(days=day) for day in range(6)]
    filling.index(*(an_attempt(f"api-crowd/crowd{n}", started_at=days[n % 6], nodes=["node1"]) for n in range(12)))

    def fetch_next_page(token: str | None) -> httpx.Response:
        position = {"continue": token} if token else {}
        return api.get("/api/v1/schedulerlogs", namespace="api-crowd", limit="4", **position)

    tokens: list[str | None] = [None] * 60
    seen: list[list[str]] = [[] for _ in tokens]
    with ThreadPoolExecutor(12) as pool:
        for page in range(3):
            answers = list(pool.map(fetch_next_page, tokens))
            assert {answer.status_code for answer in answers} == {200}, answers[-1].text
            tokens = [answer.json()["continue"] for answer in answers]
            for names_seen, answer in zip(seen, answers, strict=True):
                names_seen += [item["name"] for item in answer.json()["items"]]
            assert {answer.json()["total"] for answer in answers} == {12}, "as on the first page"
            filling.index(an_attempt(f"api-crowd/crowd-later{page}", started_at=NOW + timedelta(seconds=page + 1)))
    assert tokens == [None] * 60
    assert all(sorted(crowd) == sorted(f"crowd{n}" for n in range(12)) for crowd in seen)
    assert until(lambda: _open_contexts(filling.url) == 0)


def _open_contexts(url: str) -> int:
    nodes = httpx.get(f"{url}/_nodes/stats/indices/search", timeout=30).json()["nodes"].values()
    counts = ("open_contexts", "point_in_time_current", "scroll_current")
    return sum(node["indices"]["search"][name] for node in nodes for name in counts)


def test_a_history_shows_attempts_in_a_row_as_episodes(filling: Filling, api: Served) -> None:
    def index_attempts(*minutes: int, reason: str = "NumaNotFit", **fields: Any) -> None:
        all_fields = {"reason": reason} | fields
        times = [NOW + timedelta(minutes=minute) for minute in minutes]
        filling.index(*join_episode(an_attempt("api-history/a", started_at=time, **all_fields) for time in times))

    index_attempts(0, 1, 2)
    index_attempts(3, 4, reason="CardInsufficientMemory")
    index_attempts(5)
    index_attempts(6, chosen="node2", bound=True)
    answer = api.get_schedulerlog("api-history/a", "/history").json()
    outline = [(episode["status"], episode["attempts"], episode["reasons"]) for episode in answer["episodes"]]
    assert outline == [
        ("succeeded", 1, ["NumaNotFit"]),
        ("failed", 1, ["NumaNotFit"]),
        ("failed", 2, ["CardInsufficientMemory"]),
        ("failed", 3, ["NumaNotFit"]),
    ]
    latest, *_, first = answer["episodes"]
    assert latest["filter"]["summary"] == "find fit node(node2), 1 nodes not fit, 1 nodes fit(node2:11.58)"
    assert latest["bind"] == {"status": "passed", "summary": "Successfully binding node [node2] to api-history/a"}
    assert first["first_seen_at"] == NOW.isoformat().replace("+00:00", "Z")
    assert first["last_seen_at"] == (NOW + timedelta(minutes=2)).isoformat().replace("+00:00", "Z")
    assert len(first["attempt_ids"]) == 3
    assert answer["continue"] is None


def test_a_history_shows_an_attempt_that_the_index_does_not_show_yet(filling: Filling, api: Served) -> None:
    first, second = join_episode(
        an_attempt("api-history/b", started_at=NOW + timedelta(minutes=minute)) for minute in range(2)
    )
    filling.index(first)
    filling.publish(second)
    # The index alone answers the first attempt, until memory has the second.
    [episode] = until(
        lambda: api.get_schedulerlog("api-history/b", "/history").json()["episodes"],
        lambda episodes: bool(episodes) and episodes[0]["attempts"] == 2,
    )
    assert episode["attempt_ids"] == [second.attempt_id, first.attempt_id]
    assert episode["attempts"] == 2


def test_a_history_of_thousands_is_counted_and_paged(filling: Filling, api: Served) -> None:
    minute = 0
    for reason, count in (("NumaNotFit", 2_500), ("CardInsufficientMemory", 3), ("NumaNotFit", 2)):
        times = [NOW - timedelta(minutes=minute + number) for number in range(count)]
        minute += count
        fields: dict[str, Any] = {"reason": reason, "nodes": ["node1"]}
        filling.index(*join_episode(an_attempt("api-history/long", started_at=time, **fields) for time in times))
    counts: list[int] = []
    query = {"limit": "1"}
    while True:
        answer = api.get("/api/v1/namespaces/api-history/pods/long/schedulerlog/history", **query).json()
        counts += [episode["attempts"] for episode in answer["episodes"]]
        assert all(len(episode["attempt_ids"]) <= 100 for episode in answer["episodes"])
        if answer["continue"] is None:
            break
        query["continue"] = answer["continue"]
    assert counts == [2_500, 3, 2]


def test_pods_of_one_name_in_two_namespaces_are_two_pods(filling: Filling, api: Served) -> None:
    first, second = an_attempt("api-ns1/same", nodes=["node1"]), an_attempt("api-ns2/same", nodes=["node2"])
    second = second.model_copy(
        update={"pod": PodRef(namespace="api-ns2", name="same", uid="other"), "attempt_id": "22" * 16}
    )
    filling.index(first, second)
    filling.publish(first)
    assert [list_names(api.get_schedulerlog(pod)) for pod in ("api-ns1/same", "api-ns2/same")] == [["node1"], ["node2"]]


def test_h9_pods_that_are_asked_for_at_once_are_read_together_and_each_caller_gets_their_own(
    filling: Filling, api: Served
) -> None:
    pods = [f"api-together/{number}" for number in range(12)] + ["api-together-2/other", "api-together-2/none"]
    tried = [
        an_attempt(pod, started_at=NOW - timedelta(days=days), nodes=[f"{pod.replace('/', '-')}-{days}"])
        for pod in pods[:-1]
        # Two pods had the name, one after the other, and the older one was tried on a day of its own.
        for days in (3, 2)
    ]
    filling.index(*tried, _with_another_uid(tried[0]))
    answered = 'schedulerlog_api_opensearch_seconds_count{outcome="answered",request="_search"}'
    before = api.sum_metric(answered)
    requested = pods * 10
    for pod, answer in zip(requested, asyncio.run(_get_at_once(api, requested)), strict=True):
        if pod.endswith("none"):
            assert answer.status_code == 404
        else:
            assert list_names(answer) == [f"{pod.replace('/', '-')}-2"]
    assert api.sum_metric(answered) - before < len(requested)


async def _get_at_once(api: Served, pods: list[str]) -> list[httpx.Response]:
    async with httpx.AsyncClient(base_url=api.client.base_url, timeout=60) as client:
        named = [pod.split("/") for pod in pods]
        paths = [f"/api/v1/namespaces/{namespace}/pods/{name}/schedulerlog" for namespace, name in named]
        return await asyncio.gather(*map(client.get, paths))


def _with_another_uid(attempt: AttemptSummarized) -> AttemptSummarized:
    pod = PodRef(namespace=attempt.pod.namespace, name=attempt.pod.name, uid="another")
    earlier = {"started_at": attempt.started_at - timedelta(days=1), "attempt_id": "33" * 16, "nodes": ["older"]}
    return attempt.model_copy(update={"pod": pod} | earlier)
