"""Kubernetes objects of the tests: written through the API server and taken away again."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx

from embedded.control_plane import ControlPlane

T = TypeVar("T")


@contextmanager
def created_namespace(cluster: ControlPlane, name: str) -> Iterator[None]:
    """A namespace with its default service account; deleted, its pods at once, when the block ends."""
    with cluster.client() as client:
        create(client, "/api/v1/namespaces", {"metadata": {"name": name}})
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        eventually(lambda: client.get(account).status_code == httpx.codes.OK, f"no service account in {name}")
        try:
            yield
        finally:
            # Grace would keep the pods of nodes that are gone by then.
            client.request("DELETE", f"/api/v1/namespaces/{name}/pods", json={"gracePeriodSeconds": 0})
            client.delete(f"/api/v1/namespaces/{name}")


def create(client: httpx.Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """POST; the created object. The server's own words are in the error."""
    response = client.post(path, json=body)
    assert response.is_success, f"POST {path}: {response.status_code} {response.text[:800]}"
    created: dict[str, Any] = response.json()
    return created


def eventually(probe: Callable[[], T], otherwise: str, timeout_seconds: float = 30.0) -> T:
    """The first true answer of ``probe``; fails with ``otherwise`` when none comes in time."""
    deadline = time.monotonic() + timeout_seconds
    while not (answer := probe()):
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.05)
    return answer
