"""Two consumers of decisions: ``python -m dev.bench.consumers faust|aiokafka SERVERS TOPIC RECORDS WARM_UP``.

Both only decode every record with ``schemas.codec.records`` (with orjson if the record is a single device) and count
verdicts. The process prints the number of verdicts and the CPU seconds from the first record to the last, without those
of the warm-up.
"""

import asyncio
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import faust
import numpy as np
import orjson
from aiokafka import AIOKafkaConsumer

from schemas.codec.records import decode
from schemas.events import DevicesJudged

DEVICE_TYPE = b"bench.device"
Headers = list[tuple[str, bytes]]


class Count:
    """Verdicts counted so far, and the CPU time since the first record after the warm-up."""

    def __init__(self, records: int, warm_up: int) -> None:
        self.verdicts: Counter[str] = Counter()
        self._records = records
        self._left = records + warm_up
        self._began: float | None = None

    def add(self, value: bytes, headers: Headers) -> bool:
        """Count one record; whether it was the last."""
        # CPU counts from here: imports, the connection and the group's first assignment happen once only.
        if self._left == self._records:
            self.verdicts.clear()
            self._began = time.process_time()
        if dict(headers)["ce_type"] == DEVICE_TYPE:
            self.verdicts[orjson.loads(value)["verdict"]] += 1
        else:
            self._add_columns(value, headers)
        self._left -= 1
        return self._left == 0

    def _add_columns(self, value: bytes, headers: Headers) -> None:
        event = decode(value, headers)
        if isinstance(event, DevicesJudged):
            counts = np.bincount(event.verdict, minlength=len(event.verdicts))
            self.verdicts.update(dict(zip(event.verdicts, counts.tolist(), strict=True)))

    def report(self) -> None:
        seconds = time.process_time() - (self._began or 0)
        # Faust redirects sys.stdout to its own log.
        line = json.dumps({"verdicts": self.verdicts.total(), "cpu_seconds": seconds})
        print(line, file=sys.__stdout__, flush=True)


async def read_with_aiokafka(servers: str, topic: str, count: Count) -> None:
    async with AIOKafkaConsumer(topic, bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        while True:
            for batch in (await consumer.getmany(timeout_ms=1000)).values():
                for record in batch:
                    if count.add(record.value, list(record.headers)):
                        return count.report()


def read_with_faust(servers: str, topic: str, count: Count, folder: Path) -> None:
    app: Any = faust.App(
        f"bench-{topic}",
        broker=f"kafka://{servers}",
        datadir=folder,
        web_enabled=False,
        # Faust would create topics of its own and elect a leader for them, which the raw consumer does not do.
        topic_allow_declare=False,
        topic_disable_leader=True,
        stream_buffer_maxsize=256,
        consumer_auto_offset_reset="earliest",
    )
    source = app.topic(topic, value_type=bytes, value_serializer="raw", key_type=bytes, key_serializer="raw")

    async def count_records(stream: Any) -> None:
        # As in the worker: it acknowledges by hand after its write.
        async for event in stream.noack().events():
            headers = event.message.headers
            pairs = list(headers.items()) if isinstance(headers, dict) else list(headers)
            is_last = count.add(event.value, pairs)
            event.ack()
            if is_last:
                count.report()
                # The result is printed, and an orderly stop of Faust takes seconds.
                os._exit(0)

    app.agent(source, name="count")(count_records)
    app.finalize()
    faust.Worker(app, loglevel="ERROR").execute_from_commandline()


def main(client: str, servers: str, topic: str, records: str, warm_up: str) -> None:
    count = Count(int(records), int(warm_up))
    if client == "aiokafka":
        asyncio.run(read_with_aiokafka(servers, topic, count))
    else:
        read_with_faust(servers, topic, count, Path(".run/bench/faust"))


if __name__ == "__main__":
    main(*sys.argv[1:])
