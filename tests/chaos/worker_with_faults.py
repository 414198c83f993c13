"""A process of the pipeline, killed at a point or with a bug put into it: ``python -m tests.chaos.worker_with_faults``.

``CHAOS_DIE=POINT:N`` sends SIGKILL to itself when it comes to the point for the Nth time, ``CHAOS_FREEZE=N`` SIGSTOP
before its Nth bulk request; ``CHAOS_BUG=NAME`` breaks a promise on purpose. Arguments are those of
``python -m pipeline``, or with ``all`` as the first one those of ``schedulerlog``. No product code knows of any of it.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, Final

from aiokafka import AIOKafkaConsumer

from pipeline.__main__ import app
from pipeline.sinks.opensearch import OpenSearchSink
from pipeline.worker import agent
from pipeline.worker.faust_app import RunConsumer
from runtime.kafka.producer import TopicsSink
from schedulerlog import main as run_schedulerlog
from schemas.codec.records import decode
from schemas.topics import ATTEMPTS, POD_HISTORIES
from tests.chaos import bugs, index_bugs

Act = Callable[[], None]


def _signal_at(count: int, number: signal.Signals) -> Act:
    left = count

    def count_down() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), number)

    return count_down


def _die_while_decoding(die: Act) -> None:
    def decode_and_die(value: Any, headers: Any) -> Any:
        event = decode(value, headers)
        die()
        return event

    setattr(agent, "decode", decode_and_die)


def _act_around_send(topic: str, before: Callable[[], Any] | None, in_flight: Act | None, after: Act | None) -> None:
    """Act when records are sent of which one is for ``topic``."""
    original = TopicsSink.send

    async def send_and_act(sink: TopicsSink, outgoing: Any) -> Any:
        if not any(record.topic == topic for record in outgoing):
            return await original(sink, outgoing)
        if before:
            await before()
        sending = asyncio.create_task(original(sink, outgoing))
        if in_flight:
            await asyncio.sleep(0.003)  # sent, perhaps written, not acknowledged
            in_flight()
        places = await sending
        if after:
            after()
        return places

    setattr(TopicsSink, "send", send_and_act)


def _die_before_records(die: Act) -> None:
    """Die when what was acknowledged until then is committed, which happens twice a second."""

    async def wait_and_die() -> None:
        await asyncio.sleep(1.5)
        die()

    _act_around_send(ATTEMPTS.name, wait_and_die, None, None)


def _die_between_records_and_histories(die: Act) -> None:
    _act_around_send(ATTEMPTS.name, None, None, die)


def _die_after_history(die: Act) -> None:
    _act_around_send(POD_HISTORIES.name, None, None, die)


def _with_a_bulk_in_flight(die: Act) -> None:
    bulk = OpenSearchSink._send_bulk

    async def write_and_die(sink: OpenSearchSink, batch: Any) -> Any:
        answering = asyncio.create_task(bulk(sink, batch))
        await asyncio.sleep(0.003)  # sent, perhaps applied, not answered
        die()
        return await answering

    setattr(OpenSearchSink, "_send_bulk", write_and_die)


def _act_before_bulk(act: Act) -> None:
    bulk = OpenSearchSink._send_bulk

    async def act_and_write(sink: OpenSearchSink, batch: Any) -> Any:
        act()
        return await bulk(sink, batch)

    setattr(OpenSearchSink, "_send_bulk", act_and_write)


def _die_after_bulk(die: Act) -> None:
    bulk = OpenSearchSink._send_bulk

    async def write_and_die(sink: OpenSearchSink, batch: Any) -> Any:
        answers = await bulk(sink, batch)
        die()
        return answers

    setattr(OpenSearchSink, "_send_bulk", write_and_die)


def _die_after_commit(die: Act) -> None:
    commit = AIOKafkaConsumer.commit

    async def commit_and_die(consumer: Any, offsets: Any = None) -> None:
        await commit(consumer, offsets)
        die()

    setattr(AIOKafkaConsumer, "commit", commit_and_die)


def _die_after_acknowledgement(die: Act) -> None:
    acknowledge = RunConsumer.acknowledge

    def acknowledge_and_die(consumer: RunConsumer, tp: Any, offset: int) -> None:
        acknowledge(consumer, tp, offset)
        die()

    setattr(RunConsumer, "acknowledge", acknowledge_and_die)


def _die_in_rebalance(die: Act) -> None:
    forget = agent.DecisionsAgent.forget

    def forget_and_die(agent: agent.DecisionsAgent, *revoked: Any) -> None:
        forget(agent, *revoked)
        die()

    setattr(agent.DecisionsAgent, "forget", forget_and_die)


WORKER_POINTS: Final[dict[str, Callable[[Act], None]]] = {
    "decoding": _die_while_decoding,
    "records-in-flight": lambda die: _act_around_send(ATTEMPTS.name, None, die, None),
    "after-records": _die_between_records_and_histories,
    "after-histories": _die_after_history,
    "after-acknowledgement": _die_after_acknowledgement,
    "rebalance": _die_in_rebalance,
}
INDEX_POINTS: Final[dict[str, Callable[[Act], None]]] = {
    "bulk-in-flight": _with_a_bulk_in_flight,
    "after-bulk": _die_after_bulk,
    "after-commit": _die_after_commit,
}
_POINTS_OF_BUGS: Final[dict[str, Callable[[Act], None]]] = {"before-records": _die_before_records}


def main() -> None:
    point, _, count = os.environ.get("CHAOS_DIE", "").partition(":")
    if point:
        (WORKER_POINTS | INDEX_POINTS | _POINTS_OF_BUGS)[point](_signal_at(int(count), signal.SIGKILL))
    if count_of_bulks := os.environ.get("CHAOS_FREEZE"):
        _act_before_bulk(_signal_at(int(count_of_bulks), signal.SIGSTOP))
    if bug := os.environ.get("CHAOS_BUG"):
        (bugs.BUGS | index_bugs.BUGS)[bug]()
    if sys.argv[1:2] == ["all"]:
        run_schedulerlog()
    else:
        app()


if __name__ == "__main__":
    main()
