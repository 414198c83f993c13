"""Inputs from the API server: a pod's log, and the cluster's nodes."""

from collections.abc import AsyncIterator
from pathlib import Path

import orjson

from ingest.errors import MistakeError
from ingest.reading.checkpoint import CheckpointState
from ingest.reading.options import LogOptions
from ingest.reading.pump import LinesRead
from ingest.sources.follow import Reached
from ingest.sources.pod_choice import ANY, follow_chosen
from ingest.sources.pod_log import PodContainer, Since, follow_pod
from runtime.kubernetes.client import PAGE_LIMIT, Client
from runtime.kubernetes.credentials import ApiCredentials, from_kubeconfig, load_service_account


async def _open_client(kubeconfig: Path | None) -> Client:
    return Client(await ApiCredentials.open(from_kubeconfig(kubeconfig) if kubeconfig else load_service_account))


async def list_nodes(kubeconfig: Path | None) -> AsyncIterator[bytes]:
    """List the cluster's nodes, in pages of JSON."""
    client = await _open_client(kubeconfig)
    try:
        query: dict[str, str | int] = {"limit": PAGE_LIMIT}
        while True:
            page = await client.get_page("/api/v1/nodes", **query)
            yield orjson.dumps(page)
            if not (token := page["metadata"].get("continue")):
                return
            query["continue"] = token
    finally:
        await client.close()


async def follow_pod_log(options: LogOptions, state: CheckpointState) -> AsyncIterator[LinesRead]:
    """Follow the log of the pod that the options name. Raises ``MistakeError``."""
    namespace, _, pod_path = (options.pod or "").partition("/")
    name, _, container = pod_path.partition("/")
    if not namespace or not name:
        raise MistakeError(f"--pod {options.pod}: write NAMESPACE/NAME or NAMESPACE/NAME/CONTAINER")
    client = await _open_client(options.kubeconfig)
    try:
        wanted = PodContainer(namespace, name, container)
        if name.endswith(ANY):
            async for lines, reached in follow_chosen(client, wanted, state.since):
                yield LinesRead(lines, Reached(), reached)
        async for lines, since in follow_pod(client, wanted, Since.parse(state.since)):
            yield LinesRead(lines, Reached(), str(since))
    finally:
        await client.close()
