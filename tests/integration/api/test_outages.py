"""Answers of the API while its stores are down, slow, empty or not there yet."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions

from dev import embedded
from schemas.topics import ATTEMPTS
from tests.support.harness.api_process import Served, serving
from tests.support.harness.index_filling import Filling, an_attempt
from tests.support.waiting import until

NOT_ASKED = "the last 3 requests were not answered in time"

OwnBackends = Callable[..., embedded.Backends]


def test_the_api_through_the_failures_of_both_stores(own_backends: OwnBackends) -> None:
    servers = own_backends()
    filling = Filling(servers.bootstrap_servers, servers.opensearch_url)
    with serving(filling.bootstrap_servers, filling.url, SCHEDULERLOG_OPENSEARCH_TIMEOUT="3") as api:
        # Nothing is provisioned: the topic is missing, no index has ever been written.
        assert until(lambda: "schedulerlog pipeline provision" in api.get_part("attempts_topic")["why_not"])
        assert api.is_ready()
        assert api.get_schedulerlog("default/none").status_code == 404
        assert api.get_schedulerlog("default/none", "/history").status_code == 404
        empty = {"total": 0, "items": [], "continue": None}
        assert api.get("/api/v1/findings").json() == empty
        assert api.get("/api/v1/schedulerlogs").json() == empty | {"workloads": None, "nodes": None}
        for unknown in ("/api/v1/nodes/node1", "/api/v1/nodes/node1/occupancy"):
            assert api.get(unknown).status_code == 404

        # Provisioned now: the running API finds the topic by itself.
        filling.provision()
        assert until(lambda: api.get_part("attempts_topic")["ready"])
        filling.publish(an_attempt("default/told"))
        filling.index(an_attempt("default/stored"))
        assert until(lambda: api.get_schedulerlog("default/told").status_code == 200)

        # The index dies: the latest pods are answered, the others are "try again", never "unknown".
        servers.opensearch.kill()
        assert api.get_schedulerlog("default/told").status_code == 200
        for answer in (
            api.get_schedulerlog("default/stored"),
            api.get_schedulerlog("default/told", "/history"),
            api.get("/api/v1/schedulerlogs"),
            api.get("/api/v1/findings"),
            api.get("/api/v1/nodes/node1"),
            api.get("/api/v1/nodes/node1/occupancy"),
            api.get("/api/v1/namespaces/default/pods/told/occupancy"),
        ):
            assert answer.status_code == 503
            assert {"error", "next"} < set(answer.json())
        assert api.is_ready()
        assert not api.get_part("opensearch")["ready"]
        servers.opensearch.start()
        assert until(lambda: api.get_schedulerlog("default/stored").status_code == 200)

        # The index hangs: the answer comes after the time that is set, not when the caller gives up.
        servers.opensearch.pause()
        seconds, answer = _measure_request(api, "/api/v1/namespaces/default/pods/stored/schedulerlog")
        assert answer.status_code == 503
        assert api.get_schedulerlog("default/told").status_code == 200
        _call_a_hanging_index(api, seconds)
        servers.opensearch.resume()
        assert until(lambda: api.get_schedulerlog("default/stored").status_code == 200)

        # The broker dies: what memory knows is answered, and the index is asked whether it knows better.
        servers.kafka[0].kill()
        assert api.get_schedulerlog("default/told").status_code == 200
        assert until(lambda: "does not answer" in api.get_part("attempts_topic")["why_not"])
        newer = an_attempt("default/told", nodes=["node7"], started_at=an_attempt().started_at.replace(year=2027))
        filling.index(newer)
        assert api.get_schedulerlog("default/told").json()["filter"]["nodes"][0]["name"] == "node7"
        assert api.is_ready()
        servers.kafka[0].start()
        assert until(lambda: api.get_part("attempts_topic")["ready"])
        filling.publish(an_attempt("default/after"))
        assert until(lambda: api.get_schedulerlog("default/after").status_code == 200)

        # More partitions: records on the new ones are read too.
        asyncio.run(_add_partitions(filling.bootstrap_servers, 30))
        filling.publish(*(an_attempt(f"default/spread-{n}") for n in range(60)))
        assert until(lambda: all(api.get_schedulerlog(f"default/spread-{n}").status_code == 200 for n in range(60)))
    assert httpx.get(filling.url, timeout=30).status_code == 200


def _call_a_hanging_index(api: Served, seconds_of_read: float) -> None:
    """Check M14: a caller waits for OpenSearch once for all reads; after three time-outs, most are answered at once."""
    # A diagnosis reads several times and answers what it knows; each read would have 3 s of its own.
    seconds, diagnosis = _measure_request(api, "/api/v1/namespaces/default/pods/stored/diagnosis")
    assert diagnosis.status_code == 200
    assert seconds < 2 * seconds_of_read
    paths = ["/api/v1/schedulerlogs", "/api/v1/namespaces/default/pods/stored/schedulerlog"] * 10
    with ThreadPoolExecutor(len(paths)) as pool:
        for _ in range(3):
            answers = list(pool.map(api.get, paths))
            assert {answer.status_code for answer in answers} == {503}
        assert api.get_schedulerlog("default/told").status_code == 200
    # Not asked, so not waited for. Others try whether it answers again, one a second.
    refused = [body for body in (answer.json() for answer in answers) if NOT_ASKED in body["error"]]
    assert len(refused) > len(paths) / 2
    assert all("GET /readyz shows when OpenSearch is back" in body["next"] for body in refused)


def _measure_request(api: Served, path: str) -> tuple[float, httpx.Response]:
    """Measure the seconds of a request, and return them with the answer."""
    started = time.monotonic()
    answer = api.get(path)
    return time.monotonic() - started, answer


async def _add_partitions(bootstrap_servers: str, total: int) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap_servers)
    await admin.start()
    try:
        await admin.create_partitions({ATTEMPTS.name: NewPartitions(total)})
    finally:
        await admin.close()
