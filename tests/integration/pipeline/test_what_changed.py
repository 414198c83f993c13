"""What changed between two attempts of a pod, from the worker to the API's history."""

from datetime import timedelta
from typing import Any

from tests.support.builders.attempts import STARTED, a_bind, about, an_attempt
from tests.support.harness.api_process import Served, serving
from tests.support.harness.pipeline_process import Pipeline
from tests.support.waiting import until

FULL = {"node1": [["CardCordoned"] * 2], "node2": [["CardCordoned"] * 2]}
FREED = {"node1": [["picked", "fits"]], "node2": [["CardCordoned"] * 2]}


def episodes(api: Served) -> Any:
    """Both, once the bind is part of the latest."""
    found = api.schedulerlog("changed/pod", "/history").json().get("episodes", [])
    return found if [each["status"] for each in found] == ["succeeded", "failed"] else []


def test_a_history_says_what_changed_whether_memory_or_the_index_answers(running: Pipeline) -> None:
    addresses = running.servers.bootstrap_servers, running.servers.opensearch_url
    common = about("pod", "changed")
    later = common | {"attempt_id": "later", "started_at": STARTED + timedelta(minutes=1)}
    with serving(*addresses) as following:
        assert until(following.is_ready)
        running.send([*an_attempt(FULL, **common), *an_attempt(FREED, chosen="node1", **later), a_bind(**later)])
        from_memory = until(lambda: episodes(following))
    with serving(*addresses, SCHEDULERLOG_API_REPLAYED_RECORDS="0") as without_memory:
        assert until(without_memory.is_ready)
        from_index = until(lambda: episodes(without_memory))
    changed = ["bind: nothing became bound to node1", "node1: 2/2 CardCordoned became fit"]
    assert [each["changes"] for each in from_index] == [changed, []]
    assert from_memory == from_index
