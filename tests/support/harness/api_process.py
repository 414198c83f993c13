"""The API as a process of its own, as people run it."""

import os
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import httpx

from tests.support.harness.forked import Forked


@dataclass(frozen=True, slots=True)
class Served:
    client: httpx.Client
    process: "Forked | None" = None

    def get(self, path: str, **query: str) -> httpx.Response:
        return self.client.get(path, params=query)

    def get_schedulerlog(self, pod: str, suffix: str = "") -> httpx.Response:
        namespace, name = pod.split("/")
        return self.get(f"/api/v1/namespaces/{namespace}/pods/{name}/schedulerlog{suffix}")

    def sum_metric(self, name: str) -> float:
        lines = self.get("/metrics").text.splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(name))

    def is_ready(self) -> bool:
        return self.get("/readyz").status_code == httpx.codes.OK

    def get_part(self, name: str) -> dict[str, Any]:
        part: dict[str, Any] = self.get("/readyz").json()["parts"][name]
        return part


@contextmanager
def serving(
    bootstrap_servers: str,
    opensearch_url: str,
    authority: Path | None = None,
    log: IO[str] | None = None,
    /,
    **settings: str,
) -> Iterator[Served]:
    """``authority``: of the certificate in ``settings``; ``log`` gets what the process logs."""
    environment = os.environ | {
        "SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS": bootstrap_servers,
        "SCHEDULERLOG_OPENSEARCH_URL": opensearch_url,
        # More than the default: the machine of the tests may stand still for seconds.
        "SCHEDULERLOG_OPENSEARCH_TIMEOUT": "25",
    }
    listen = settings.pop("SCHEDULERLOG_API_LISTEN", "0")
    arguments = ("api", "serve", "--listen", listen)
    process = Forked(*arguments, env=environment | settings, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        url = next(word for word in line.split() if word.startswith("http"))
        verify = ssl.create_default_context(cafile=authority) if authority else True
        with httpx.Client(base_url=url, timeout=30, verify=verify) as client:
            yield Served(client, process)
    finally:
        process.terminate()
        assert process.wait(timeout=120) in (0, -15)
        if process.stdout:
            process.stdout.close()
