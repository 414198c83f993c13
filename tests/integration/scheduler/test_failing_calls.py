"""H6: the spool and its sender on a real broker, while their system calls fail in runs: Kafka has what was accepted."""

import asyncio
from pathlib import Path

from runtime.settings.kafka_connection import build_kafka_connection
from scheduler.metrics import Metrics
from scheduler.publish.kafka_publisher import Publisher
from scheduler.publish.spool.spool import Spool, SpoolLimits, get_now
from schemas.topics import DECISIONS
from tests.support.backends import Addresses
from tests.support.builders.spool_entries import a_verdict
from tests.support.harness.failing_calls import FAILURES, Faults
from tests.support.harness.scheduler_process import read_topic
from tests.support.harness.topics import provision_all

NAME = "failing-call"


async def test_h6_what_was_accepted_while_calls_failed_in_runs_is_in_kafka_in_order(
    backends: Addresses, tmp_path: Path
) -> None:
    await provision_all(backends.bootstrap_servers)
    spool = Spool(tmp_path, SpoolLimits(segment_bytes=500))
    publisher = Publisher(spool, build_kafka_connection(backends.bootstrap_servers), get_now, Metrics())
    task = asyncio.create_task(publisher.run())
    accepted, problems = list[str](), set[str]()
    for failure in FAILURES:
        for count in (1, 3, 40):
            with Faults(failure, 5 + len(accepted) % 7, count).injected():
                for _ in range(5):
                    accepted.append(f"{NAME}-{len(accepted)}")
                    spool.append([a_verdict(accepted[-1])])
                    await spool.flush()
                    await asyncio.sleep(0.02)  # the sender reads meanwhile
            problems |= {spool.problem, spool.reading.text}
    async with asyncio.timeout(60):
        while spool.unsent_bytes or spool.problem or spool.reading.text or publisher.problem:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    spool.close()
    assert len(problems) > 1, "calls failed, and it said so"
    reads = await read_topic(backends.bootstrap_servers, DECISIONS.name, "default/pod")
    sent = [read.get_header("ce_id").removesuffix("/concluded") for read in reads]
    last = list(dict.fromkeys(reversed([name for name in sent if name.startswith(NAME)])))[::-1]
    assert last == accepted
