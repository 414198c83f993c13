"""Queues of Kueue that take no workloads, from the fields of their condition without the object around them."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from schemas.json_types import Json

_STOPPED: Final = re.compile(
    r"^\s*[-*]?\s*[\"'`]?[Mm]essage[\"'`]?:\s*[\"'`]?(?P<words>Can't admit new workloads: .*?)[\"'`,]*\s*$"
)
_REASON: Final = re.compile(r"^\s*[-*]?\s*[\"'`]?[Rr]eason[\"'`]?:\s*[\"'`]?(?P<reason>[A-Z]\w+)")
_NAMED: Final = re.compile(r"\b(?:describe|get) (?:clusterqueues?|cq)(?:\.[\w.]+)?[ /]+(?P<name>[a-z0-9][\w.-]*)")
"""Name of the queue in the command that shows it."""
_MAX_DISTANCE: Final = 3
"""Lines between the fields of one condition."""


def list_stopped_queues(lines: Sequence[str]) -> Iterator[Json]:
    """List the queues, each with its condition; one that no command names is called `?`."""
    if any(line.lstrip().startswith(("kind:", "API Version:", "Kind:")) for line in lines):
        # The object itself is there.
        return
    for position, line in enumerate(lines):
        if (words := _STOPPED.match(line)) is None:
            continue
        around = lines[max(position - _MAX_DISTANCE, 0) : position + _MAX_DISTANCE + 1]
        reason = next((match["reason"] for near in around if (match := _REASON.match(near))), "")
        name = next((match["name"] for near in reversed(lines[:position]) if (match := _NAMED.search(near))), "?")
        condition = {"type": "Active", "status": "False", "reason": reason, "message": words["words"]}
        yield {
            "apiVersion": "kueue.x-k8s.io/v1beta1",
            "kind": "ClusterQueue",
            "metadata": {"name": name},
            "status": {"conditions": [condition]},
        }
