"""``python -m ingest`` as a process, and what is in the index behind it."""

import subprocess
from typing import Any

import httpx

from tests.support.harness.forked import Forked
from tests.support.harness.pipeline_process import Pipeline


def run_ingest(running: Pipeline, *arguments: str) -> Forked:
    kafka = running.servers.bootstrap_servers
    return Forked("ingest", *arguments, "--kafka", kafka, stderr=subprocess.PIPE, text=True)


def read(running: Pipeline, *arguments: str) -> str:
    """Return what it says when it has read to the end."""
    process = run_ingest(running, *arguments)
    errors: str = process.communicate(timeout=120)[1]
    assert process.returncode == 0, errors
    return errors


def wait_until_taken(running: Pipeline) -> None:
    """Wait until the worker has done all that lies on the topic."""
    running.settle()


def get_versions(running: Pipeline, query: dict[str, Any]) -> dict[str, tuple[int, Any]]:
    """Return the version and content of every document in any index.

    Of a finding the content alone: reported again, it replaces itself, because it may have other numbers then.
    """
    url = f"{running.servers.opensearch_url}/schedulerlog-*"
    httpx.post(f"{url}/_refresh", timeout=30)
    body = {"size": 10_000, "version": True, "query": query}
    hits = httpx.post(f"{url}/_search", json=body, timeout=30).json()["hits"]["hits"]
    return {
        f"{hit['_index']}/{hit['_id']}": (0 if "-findings-" in hit["_index"] else hit["_version"], hit["_source"])
        for hit in hits
    }


def read_readiness(port: str) -> tuple[int, str]:
    """Read status and text of a process's readiness; 0 while it does not answer."""
    try:
        answer = httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=5)
    except httpx.TransportError:
        return 0, ""
    return answer.status_code, answer.text
