"""From decisions to the API: what changed between two attempts of a pod, and the trace of each."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from schemas.codec.records import EncodedRecord
from tests.support.builders.attempts import STARTED, a_bind, an_attempt, build_common
from tests.support.builders.kube_objects import a_pod
from tests.support.harness.api_process import Served, serving
from tests.support.harness.pipeline_process import Pipeline
from tests.support.harness.scheduler_process import NODE_NAMES, SchedulerProcess, a_refused_pod
from tests.support.otlp_receiver import Collector, ReceivedSpan, collector
from tests.support.waiting import until

FULL = {"node1": [["CardCordoned"] * 2], "node2": [["CardCordoned"] * 2]}
FREED = {"node1": [["picked", "fits"]], "node2": [["CardCordoned"] * 2]}


def read_episodes(api: Served) -> Any:
    """Read both episodes, once the bind is part of the latest."""
    episodes = api.get_schedulerlog("changed/pod", "/history").json().get("episodes", [])
    return episodes if [episode["status"] for episode in episodes] == ["succeeded", "failed"] else []


def test_a_history_says_what_changed_whether_memory_or_the_index_answers(running: Pipeline) -> None:
    addresses = running.servers.bootstrap_servers, running.servers.opensearch_url
    common = build_common("pod", "changed")
    later = common | {"attempt_id": "later", "started_at": STARTED + timedelta(minutes=1)}
    with serving(*addresses) as following:
        assert until(following.is_ready)
        running.send([*an_attempt(FULL, **common), *an_attempt(FREED, chosen="node1", **later), a_bind(**later)])
        from_memory = until(lambda: read_episodes(following))
    with serving(*addresses, SCHEDULERLOG_API_REPLAYED_RECORDS="0") as without_memory:
        assert until(without_memory.is_ready)
        from_index = until(lambda: read_episodes(without_memory))
    changed = ["bind: nothing became bound to node1", "node1: 2/2 CardCordoned became fit"]
    assert [episode["changes"] for episode in from_index] == [changed, []]
    assert from_memory == from_index


CALLER: Final = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")
STATE: Final = "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"
"""Trace and span of the caller of the scheduler: the example of W3C's recommendation."""
READER: Final = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
"""Trace and span of somebody who asks the API."""
PUBLISH, FOLD = "publish schedulerlog.decisions", "fold schedulerlog.decisions"
INDEX, REMEMBER = "index schedulerlog.attempts", "remember schedulerlog.attempts"


def test_a_trace_follows_a_decision_through_every_process(
    running: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The SDK sends what has gathered every five seconds otherwise.
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
    running.stop_all()
    log = running.processes.log("traced-worker")
    with collector() as traces:
        tracing = "--otlp-endpoint", traces.url, "--log-format", "json"
        running.start("traced-worker", *tracing)
        running.start_index("traced-index", *tracing)
        running.wait_ready("traced-worker")
        running.wait_index_ready("traced-index")
        servers, debug = running.servers, ("--log-level", "debug")
        with (
            serving(servers.bootstrap_servers, servers.opensearch_url, SCHEDULERLOG_OTLP_ENDPOINT=traces.url) as api,
            SchedulerProcess(tmp_path, "--kafka", servers.bootstrap_servers, *tracing, *debug) as scheduler,
        ):
            assert until(api.is_ready)
            pod = a_pod("placed", namespace="traced")
            body = {"Pod": pod, "Nodes": None, "NodeNames": NODE_NAMES}
            header = {"traceparent": f"00-{'-'.join(CALLER)}-01", "tracestate": STATE}
            chosen = httpx.post(f"{scheduler.url}/filter", json=body, headers=header, timeout=30).json()["NodeNames"]
            assert scheduler.bind(pod, chosen[0]) == {"Error": ""}
            scheduler.filter(a_refused_pod("refused", "traced"))
            trace_id = until(lambda: _get_attempt_id(api, "traced/refused"))
            api.client.get("/api/v1/schedulerlogs", headers={"traceparent": f"00-{'-'.join(READER)}-01"})
            broken = [("ce_type", b"io.schedulerlog.bind.concluded.v1"), ("ce_id", b"b1/x"), ("ce_subject", b"t/b")]
            traced = ("ce_traceparent", header["traceparent"].encode())
            running.send_records([EncodedRecord(b"k", b"{", [*broken, traced])])
            assert until(lambda: _list_names(traces, CALLER[0]) >= {"filter", "bind", PUBLISH, FOLD, INDEX, REMEMBER})
            assert until(lambda: _list_names(traces, trace_id) == {"filter", PUBLISH, FOLD, INDEX, REMEMBER})
            assert until(lambda: "b1" in log.read_text())
            read = until(lambda: _list_parents(traces.list_spans(READER[0])), lambda parents: len(parents) >= 2)
        # Of a caller that has no trace, the decision's own begins with the filter.
        assert _list_parents(traces.list_spans(trace_id)) == {
            ("filter", ""), (PUBLISH, "filter"), (FOLD, "filter"), (INDEX, FOLD), (REMEMBER, FOLD),
        }  # fmt: skip
        listed = "GET /api/v1/schedulerlogs"
        assert (listed, READER[1]) in read
        assert {parent for name, parent in read if name != listed} == {listed}
        assert {span.state for span in traces.list_spans(CALLER[0])} == {STATE}
        of_caller = _list_parents(traces.list_spans(CALLER[0]))
        assert {("filter", CALLER[1]), ("bind", "filter"), (FOLD, "filter"), (FOLD, "bind"), (INDEX, FOLD)} <= of_caller
        assert {parent for name, parent in of_caller if name == PUBLISH} == {"filter", "bind"}
        assert {(span.service, span.name) for span in traces.list_spans(trace_id)} == {
            ("schedulerlog-scheduler", "filter"), ("schedulerlog-scheduler", PUBLISH), ("schedulerlog-worker", FOLD),
            ("schedulerlog-index", INDEX), ("schedulerlog-api", REMEMBER),
        }  # fmt: skip
        [judged] = [span for span in traces.list_spans(trace_id) if span.name == "filter"]
        assert judged.attributes == {
            "schedulerlog.attempt.id": trace_id, "k8s.cluster.name": "default",
            "k8s.namespace.name": "traced", "k8s.pod.name": "refused",
        }  # fmt: skip
    lines = [json.loads(line) for line in scheduler.log.read_text().splitlines()]
    assert [line["trace"] for line in lines if "pod" in line] == [CALLER[0], CALLER[0], trace_id]
    [refused] = [line for line in map(json.loads, log.read_text().splitlines()) if "attempt" in line]
    assert (refused["attempt"], refused["pod"], refused["trace"]) == ("b1", "t/b", CALLER[0])


def _get_attempt_id(api: Served, pod: str) -> str:
    listed = api.get_schedulerlog(pod, "/history").json().get("episodes", [])
    return str(listed[0]["attempt_ids"][0]) if listed else ""


def _list_names(traces: Collector, trace: str) -> set[str]:
    return {span.name for span in traces.list_spans(trace)}


def _list_parents(spans: list[ReceivedSpan]) -> set[tuple[str, str]]:
    """List each span's name with that of its parent; with the parent's id where it is another program's."""
    names = {span.id: span.name for span in spans}
    return {(span.name, names.get(span.parent, span.parent)) for span in spans}
