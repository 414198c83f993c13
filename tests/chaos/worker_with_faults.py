"""A process of the pipeline, killed at a point or with a bug put into it: ``python -m tests.chaos.worker_with_faults``.

``CHAOS_DIE=POINT:N`` sends SIGKILL to itself when it comes to the point for the Nth time, ``CHAOS_FREEZE=N`` SIGSTOP
before its Nth bulk request; ``CHAOS_BUG=NAME`` breaks a promise on purpose. Arguments are those of
``python -m pipeline``. No product code knows of any of it.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from typing import Any, Final

from pipeline.__main__ import app
from pipeline.sinks.opensearch import OpenSearchSink
from pipeline.worker import agent
from pipeline.worker.faust_consumer import RunConsumer
from schemas.codec.records import decode
from tests.chaos import bugs, node_states_bugs


def _signal_at(count: int, number: signal.Signals) -> Callable[[], None]:
    left = count

    def passed() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), number)

    return passed


def _while_decoding(die: Callable[[], None]) -> None:
    def dying(value: Any, headers: Any) -> Any:
        event = decode(value, headers)
        die()
        return event

    setattr(agent, "decode", dying)


def _with_a_bulk_in_flight(die: Callable[[], None]) -> None:
    bulk = OpenSearchSink._bulk

    async def dying(sink: OpenSearchSink, batch: Any) -> Any:
        answering = asyncio.create_task(bulk(sink, batch))
        await asyncio.sleep(0.003)  # sent, perhaps applied, not answered
        die()
        return await answering

    setattr(OpenSearchSink, "_bulk", dying)


def _before_a_bulk(act: Callable[[], None]) -> None:
    bulk = OpenSearchSink._bulk

    async def acting(sink: OpenSearchSink, batch: Any) -> Any:
        act()
        return await bulk(sink, batch)

    setattr(OpenSearchSink, "_bulk", acting)


def _after_a_bulk(die: Callable[[], None]) -> None:
    bulk = OpenSearchSink._bulk

    async def dying(sink: OpenSearchSink, batch: Any) -> Any:
        answers = await bulk(sink, batch)
        die()
        return answers

    setattr(OpenSearchSink, "_bulk", dying)


def _after_an_acknowledgement(die: Callable[[], None]) -> None:
    acknowledge = RunConsumer.acknowledge

    def dying(consumer: RunConsumer, tp: Any, offset: int) -> None:
        acknowledge(consumer, tp, offset)
        die()

    setattr(RunConsumer, "acknowledge", dying)


def _in_a_rebalance(die: Callable[[], None]) -> None:
    forget = agent.DecisionsAgent.forget

    def dying(agent: agent.DecisionsAgent) -> None:
        forget(agent)
        die()

    setattr(agent.DecisionsAgent, "forget", dying)


POINTS: Final[dict[str, Callable[[Callable[[], None]], None]]] = {
    "decoding": _while_decoding,
    "bulk-in-flight": _with_a_bulk_in_flight,
    "after-bulk": _after_a_bulk,
    "after-acknowledgement": _after_an_acknowledgement,
    "rebalance": _in_a_rebalance,
}


def main() -> None:
    point, _, count = os.environ.get("CHAOS_DIE", "").partition(":")
    if point:
        POINTS[point](_signal_at(int(count), signal.SIGKILL))
    if at := os.environ.get("CHAOS_FREEZE"):
        _before_a_bulk(_signal_at(int(at), signal.SIGSTOP))
    if bug := os.environ.get("CHAOS_BUG"):
        (bugs.BUGS | node_states_bugs.BUGS)[bug]()
    app()


if __name__ == "__main__":
    main()
