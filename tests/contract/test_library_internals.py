"""Overridden and read parts of Faust, mode, aiokafka and uvicorn, which are as they were when our code was written.

See pipeline.worker.faust_app, runtime.kafka.consumer, runtime.kafka.refusals, runtime.kafka.quiet_fetches,
runtime.kafka.unpacking, runtime.http.patient_http, runtime.http.tls_listener and api.server.

When a pin moves, a failure here names what to read again before the override is kept.
"""

import hashlib
import inspect
import re
from functools import cache
from importlib.metadata import version
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.client import AIOKafkaClient
from aiokafka.consumer.fetcher import Fetcher, PartitionRecords
from aiokafka.consumer.group_coordinator import GroupCoordinator
from faust.tables.manager import TableManager
from faust.transport.consumer import Consumer as BaseConsumer
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer
from mode import Service
from uvicorn import Server
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from api.server import ServerWithCertificate
from pipeline.worker.faust_app import ConsumerInLoop, NoTables, RunConsumer
from runtime.http.patient_http import PatientHttp
from runtime.http.tls_listener import PatientServer
from runtime.kafka.quiet_fetches import QuietFetcher
from runtime.kafka.refusals import ExplainedConnection, TokenAuthenticator
from runtime.kafka.unpacking import BoundedPartitionRecords
from scheduler.http.server import HttpServer

PINNED = {"faust-streaming": "0.15.3", "aiokafka": "0.14.0", "uvicorn": "0.54.0"}

OVERRIDDEN = {
    ConsumerInLoop: {
        "__init__": "4c82157e36d9",
        "start": "f11841038a03",
        "maybe_start": "f0e40d3d648e",
        "stop": "32d026539c36",
        "_stopped_set": "af9b1ff77812",
        "_stop_children": "1477900e8ea2",
        "_stop_futures": "a9356c5dd851",
        "_stop_exit_stacks": "566cabf54f47",
        "on_stop": "b01e5bb11785",
        "call_thread": "479edda75b54",
        "_create_worker_consumer": "c2701bfc3e6f",
    },
    ExplainedConnection: {"__init__": "16e2b58e6f2b", "connect": "b0f9ba7f0cf6", "authenticator_oauth": "8fdc4e867f0d"},
    TokenAuthenticator: {"step": "3a013ab61098"},
    BoundedPartitionRecords: {"__init__": "8ec1c2ae6ea1"},
    QuietFetcher: {"__init__": "bf21ecb7e0f2", "_proc_fetch_request": "59bf948fff47"},
    NoTables: {"on_start": "365dd25fbc0e"},
    RunConsumer: {
        "on_init": "ddcf40c78693",
        "_new_consumer_thread": "0870ec53dea7",
        "getmany": "4b168d84882a",
        "_new_offset": "1d2c7ea89a7a",
        "_add_gap": "4df2573ded7c",
        "on_buffer_full": "c8961679e0bc",
        "on_buffer_drop": "4b57e8a418d5",
        "_wait_next_records": "6218e1969a63",
    },
    PatientHttp: {
        "__init__": "4f0899941034",
        "connection_made": "6efb565ff3d3",
        "connection_lost": "c91a4c9bf2e2",
        "data_received": "010a7ae59a5d",
        "on_message_begin": "96d377fdc7c2",
        "on_headers_complete": "1ea8589acfad",
        "on_message_complete": "1fbad42dc31f",
        "on_response_complete": "64e254f28e38",
        "pause_writing": "17a8fd215d96",
        "resume_writing": "7844bbaa8cce",
        "send_400_response": "ae5a4a3782b6",
    },
    ServerWithCertificate: {
        "__init__": "c150b55284f7",
        "shutdown": "9b33c5056299",
        "serve": "112ef41af521",
    },
    PatientServer: {
        "startup": "2aa1d70a244b",
    },
    HttpServer: {
        "capture_signals": "e1bbcd4770d1",
    },
}
"""Our class, the library's method that it replaces, and the beginning of the SHA-256 of that method's source."""

CALLED = {
    Service: ("start", "maybe_start", "stop", "_stopped_set", "_stop_children", "_stop_futures", "_stop_exit_stacks"),
    TableManager: ("_update_channels",),
    GroupCoordinator: ("fetch_committed_offsets",),
    AIOKafkaConsumerThread: ("_ensure_consumer",),
    Consumer: ("_to_message", "_get_active_partitions", "perform_seek", "highwater", "highwaters"),
}
READ = {
    AIOKafkaConsumerThread: ("self._consumer", "wait_for_shutdown"),
    BaseConsumer: ("self._acked", "self._committed_offset", "self._buffered_partitions"),
    PartitionRecords: ("while records.has_next()", "for record in next_batch:", "= next_batch.next_offset"),
    AIOKafkaConsumer: (
        "=self._fetch_max_wait_ms",
        "self._fetcher = Fetcher(",
        "await self._fetcher.close()",
        "await self._client.close()",
    ),
    Fetcher: ("self._closed = True", "self._fetch_task.cancel()", "self._fetch_max_wait_ms,", "needs_wakeup = True"),
    HttpToolsProtocol: (
        "self.transport",
        "self.scope",
        "self.loop",
        "self.headers",
        "self.url",
        "self.parser",
        "self.pipeline.appendleft(",
        "self.flow",
        "self.connections.discard(self)",
        "self.limit_concurrency is not None",
        "self.send_400_response(msg)",
    ),
    RequestResponseCycle: ("self.response_started", "self.response_complete", "self.more_body", "self.body"),
    FlowControl: ("self.write_paused",),
    Server: ("self.servers.append(", "self.lifespan.state", "self.server_state", "config.http_protocol_class"),
    AIOKafkaClient: ("await create_conn(", 'raise KafkaConnectionError(f"Unable to bootstrap'),
}


source = cache(inspect.getsource)  # which parses the whole module of a class


def test_of_a_request_that_was_answered_uvicorn_reads_what_our_stand_in_has() -> None:
    read = set(re.findall(r"cycle\.(\w+)", inspect.getsource(HttpToolsProtocol)))
    # The others are of a request that has a task, or whose answer is not complete.
    assert read == {"response_complete", "message_event", "disconnected", "keep_alive", "body", "more_body", "run_asgi"}


@pytest.mark.parametrize("package", PINNED)
def test_the_version_is_the_one_that_was_read(package: str) -> None:
    assert version(package) == PINNED[package]


@pytest.mark.parametrize(
    ("ours", "name", "digest"),
    [(ours, name, digest) for ours, methods in OVERRIDDEN.items() for name, digest in methods.items()],
)
def test_an_overridden_method_reads_as_it_did(ours: type[Any], name: str, digest: str) -> None:
    replaced = next(vars(base)[name] for base in ours.__mro__[1:] if name in vars(base))
    assert hashlib.sha256(inspect.getsource(replaced).encode()).hexdigest().startswith(digest)


@pytest.mark.parametrize("ours", OVERRIDDEN)
def test_every_overridden_method_is_named_here(ours: type[Any]) -> None:
    methods = {name for name, value in vars(ours).items() if callable(value)}
    inherited = {name for base in ours.__mro__[1:-1] if base not in OVERRIDDEN for name in vars(base)}
    assert methods & inherited - {"__doc__", "__orig_class__"} == set(OVERRIDDEN[ours])


@pytest.mark.parametrize(("owner", "name"), [(owner, name) for owner, names in CALLED.items() for name in names])
def test_a_method_that_is_called_exists(owner: type[Any], name: str) -> None:
    assert callable(getattr(owner, name))


@pytest.mark.parametrize(("owner", "name"), [(owner, name) for owner, names in READ.items() for name in names])
def test_an_attribute_that_is_read_or_assigned_is_used_by_its_owner(owner: type[Any], name: str) -> None:
    assert any(name in source(base) for base in owner.__mro__[:-1] if base.__module__ != "typing")
