"""The trace of a caller reaches the records of its decision."""

from pathlib import Path

import pytest

from schemas.codec.trace_context import NO_TRACE, Trace, trace_of
from tests.support.builders.kube_objects import a_node, a_pod
from tests.support.harness.scheduler_app import Serving

# The examples of W3C's Trace Context.
PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.mark.parametrize(
    ("headers", "trace"),
    [
        # Several lines are one list (section 3.3.1).
        (
            [("traceparent", PARENT), ("tracestate", "rojo=00f067aa0ba902b7"), ("tracestate", "congo=t61rcWkgMzE")],
            Trace(PARENT.encode(), b"rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"),
        ),
        ([("traceparent", PARENT), ("tracestate", "rojo")], Trace(PARENT.encode())),
        ([("tracestate", "rojo=00f067aa0ba902b7")], NO_TRACE),
    ],
)
async def test_the_callers_trace_is_that_of_every_record(
    tmp_path: Path, headers: list[tuple[str, str]], trace: Trace
) -> None:
    serving = Serving(tmp_path, a_node("node1"))
    # What is known of the cluster is recorded before anybody asks.
    serving.take_events()
    body = {"Pod": a_pod(), "NodeNames": ["node1"]}
    assert (await serving.http.post("/filter", json=body, headers=headers)).json()["NodeNames"] == ["node1"]
    batch = serving.spool.next_batch()
    assert batch is not None
    decided = [trace_of(entry.record.headers) for entry in batch.entries if entry.topic == "schedulerlog.decisions"]
    assert {*decided} == {trace}
