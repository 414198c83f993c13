"""The services on a Kafka with rules, each as the user that deploy/ makes for it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import httpx
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from dev.demo.processes import Processes, find_free_ports
from schemas.topics import Topic
from tests.support.harness.api_process import Served, serving
from tests.support.harness.forked import ForkedProcesses
from tests.support.harness.pipeline_process import recreate
from tests.support.harness.scheduler_process import SchedulerProcess

Settings = dict[str, str]
Way = Callable[[str], Settings]
"""The settings by which the process of a user reaches Kafka."""
# Nothing is kept in memory: the worker reads a pod's attempt before from its topic, as after a restart.
_SETTINGS: Final = {"SCHEDULERLOG_MAX_BACKOFF": "1", "SCHEDULERLOG_SUMMARY_CACHE_SIZE": "0"}


def write_flags(settings: Mapping[str, str]) -> list[str]:
    """Write the same settings as flags of a command line."""
    names = {name: name.removeprefix("SCHEDULERLOG_").lower().replace("_", "-") for name in settings}
    return [word for name, value in settings.items() for word in (f"--{names[name]}", value)]


@dataclass
class Services:
    """Running services; ``ways`` has how each process proves who it is."""

    processes: Processes
    api: Served
    scheduler: SchedulerProcess
    ways: Mapping[str, Way]
    opensearch_url: str
    ports: dict[str, str] = field(default_factory=dict)
    """Ports of the metrics of processes of the pipeline."""

    def read_readiness(self, name: str, part: str = "") -> str:
        """Read the readiness of a process of the pipeline, or a part of it, in its own words."""
        return httpx.get(f"http://127.0.0.1:{self.ports[name]}/readyz{part}", timeout=30).text.strip()

    def get_settings(self, name: str) -> Settings:
        return self.ways[name](f"schedulerlog-{name}")

    def start(self, name: str, *arguments: str) -> None:
        """Start a process of the pipeline; returns when it is ready."""
        port = self.ports[name] = find_free_ports(name)[name]
        self.processes.start(name, "pipeline", name, "--metrics-address", port, *arguments, **self.get_settings(name))
        self.processes.wait_ready(name, f"http://127.0.0.1:{port}/readyz")

    def list_pods(self, namespace: str) -> list[str]:
        """List the pods of the attempts that the index has, sorted: a pod of two attempts twice."""
        url = f"{self.opensearch_url}/schedulerlog-attempts"
        httpx.post(f"{url}/_refresh", timeout=30)
        body = {"size": 10_000, "query": {"term": {"namespace": namespace}}, "_source": ["pod"]}
        answer = httpx.post(f"{url}/_search", json=body, params={"ignore_unavailable": "true"}, timeout=30).json()
        return sorted(hit["_source"]["pod"] for hit in answer.get("hits", {}).get("hits", []))


async def spoil(bootstrap_servers: str, with_few_partitions: Topic, with_short_retention: Topic) -> None:
    """Give two topics what ``provision`` corrects."""
    await recreate(bootstrap_servers, NewTopic(with_few_partitions.name, 1, 1))
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap_servers)
    await admin.start()
    try:
        short = {"retention.ms": "1000"}
        await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, with_short_retention.name, configs=short)])
    finally:
        await admin.close()


@contextmanager
def services(folder: Path, opensearch_url: str, ways: Mapping[str, Way]) -> Iterator[Services]:
    """Topics and templates are made, then worker, index writer, API and scheduler run."""
    with ExitStack() as stack:
        environment = _SETTINGS | {"SCHEDULERLOG_OPENSEARCH_URL": opensearch_url}
        processes = stack.enter_context(ForkedProcesses(folder / "logs", environment))
        processes.run("provision", "pipeline", "provision", **ways["provision"]("schedulerlog-provision"))
        api_settings = ways["api"]("schedulerlog-api")
        api = serving(api_settings["SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS"], opensearch_url, **api_settings)
        scheduler = SchedulerProcess(folder / "scheduler", *write_flags(ways["scheduler"]("schedulerlog-scheduler")))
        running = Services(processes, stack.enter_context(api), stack.enter_context(scheduler), ways, opensearch_url)
        running.start("worker")
        running.start("index")
        yield running
