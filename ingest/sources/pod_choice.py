"""The log of a pod whose name is known by its beginning only: a Deployment names its pods differently each time.

Of several pods the one is read that HAMi marks as its leader, else the newest one that runs; when it is replaced, the
next one is read from its start.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Final

from engine.hami import annotations
from ingest.lines.blocks import Lines
from ingest.sources.pod_log import PodContainer, Since, follow_pod
from runtime.kubernetes.client import Client
from runtime.kubernetes.errors import KubeApiError
from runtime.log_once import LoggedProblem
from schemas.json_types import JsonView

log = logging.getLogger(__name__)

ANY: Final = "*"
"""At the end of a pod's name: whatever follows."""
LOOK_SECONDS: Final = 15.0


def choose_pod(pods: Sequence[JsonView], beginning: str, current: str = "") -> str:
    """Choose the pod to read and return its name; empty if no name matches. ``current`` is the pod that is read now."""

    def rank(pod: JsonView) -> tuple[bool, bool, bool, str]:
        metadata = pod["metadata"]
        runs = pod.get("status", {}).get("phase") == "Running" and "deletionTimestamp" not in metadata
        leads = (metadata.get("labels") or {}).get(annotations.SCHEDULER_ROLE) == "leader"
        # The present one before a newer one: while both run, the older one still decides.
        return runs, leads, metadata["name"] == current, metadata.get("creationTimestamp") or ""

    candidates = [pod for pod in pods if pod["metadata"]["name"].startswith(beginning)]
    return str(max(candidates, key=rank)["metadata"]["name"]) if candidates else ""


async def follow_chosen(client: Client, wanted: PodContainer, reached: str) -> AsyncGenerator[tuple[Lines, str], None]:
    """Follow one pod after the other without an end; each result has the value for ``reached`` after a restart.

    Raises ``KubeApiError`` where retrying does not help: no permission, no such container.
    """
    current, _, since_text = reached.rpartition("/")
    since = Since.parse(since_text)
    absence = LoggedProblem(partial(log.warning, "%s; waiting for it"))
    while True:
        name = await _choose(client, wanted, current)
        if not name:
            absence.note(f"no pod of {wanted.namespace} has a name that begins with {_get_prefix(wanted)}")
            await asyncio.sleep(LOOK_SECONDS)
            continue
        absence.note("")
        current, since = name, since if name == current else Since()
        log.info("reading the log of %s/%s", wanted.namespace, name)
        async with aclosing(_follow_until_replaced(client, wanted, name, since)) as stream:
            async for lines, since in stream:
                yield lines, f"{name}/{since}"


async def _follow_until_replaced(
    client: Client, wanted: PodContainer, name: str, since: Since
) -> AsyncGenerator[tuple[Lines, Since], None]:
    """Follow this pod as long as it is the one to read."""
    lines = follow_pod(client, replace(wanted, pod=name), since)
    loop = asyncio.get_running_loop()
    look_at = loop.time() + LOOK_SECONDS
    reading = asyncio.ensure_future(anext(lines))
    try:
        while True:
            done, _ = await asyncio.wait({reading}, timeout=max(0.0, look_at - loop.time()))
            if done:
                yield reading.result()
                reading = asyncio.ensure_future(anext(lines))
            if loop.time() >= look_at:
                if await _choose(client, wanted, name) != name:
                    return
                look_at = loop.time() + LOOK_SECONDS
    except KubeApiError as error:
        # Gone between being chosen and being read.
        if not error.is_missing:
            raise
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await lines.aclose()  # type: ignore[attr-defined]  # an async generator


async def _choose(client: Client, wanted: PodContainer, current: str) -> str:
    """Choose the pod to read. Raises ``KubeApiError`` if this account may not list pods."""
    try:
        answer = await client.get_page(f"/api/v1/namespaces/{wanted.namespace}/pods")
    except KubeApiError as error:
        # An API server that is away for a moment is no reason to leave the pod that is read.
        if error.status in (401, 403) or not current:
            raise
        return current
    return choose_pod(answer["items"], _get_prefix(wanted), current)


def _get_prefix(wanted: PodContainer) -> str:
    return wanted.pod.removesuffix(ANY)
