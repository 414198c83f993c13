"""Parts of an attempt that the log does not report: the words of ``provenance.not_reported`` (docs/sources-hami.md)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ingest.readers.hami.attempt import UNKNOWN, HamiAttempt, NodeLine
from ingest.readers.hami.tables import Keys, Rows, parse_refusal
from schemas.events import FITS, REFUSED, Request
from schemas.events.base import OFFERED_NODES

REQUESTS: Final = "requests"
CONTAINERS: Final = "container names"
NODES: Final = "names of refused nodes"
REASONS: Final = "reasons"
SCORES: Final = "exact scores"
REFUSING: Final = "refusing containers"
DEVICES: Final = "devices"
NODES_OF_DEVICES: Final = "nodes of devices"


def list_gaps(
    attempt: HamiAttempt, requests: Sequence[Request], nodes: Mapping[str, NodeLine], rows: Rows, complete_keys: Keys
) -> list[str]:
    """List the parts that the log does not report. ``complete_keys`` comes from ``tables.find_complete_rows``."""
    gaps = list(_iterate_request_gaps(attempt, requests))
    # An attempt that ended with an error before any node was judged has no nodes to report.
    if not attempt.error or nodes:
        gaps += _iterate_node_gaps(attempt, nodes)
        gaps += _iterate_device_gaps(nodes, rows, complete_keys)
    return gaps


def _iterate_request_gaps(attempt: HamiAttempt, requests: Sequence[Request]) -> Iterator[str]:
    if attempt.requests is None:
        yield REQUESTS
    if not requests or not all(request.container for request in requests):
        yield CONTAINERS


def _iterate_node_gaps(attempt: HamiAttempt, nodes: Mapping[str, NodeLine]) -> Iterator[str]:
    lines = nodes.values()
    if attempt.offered is None:
        yield OFFERED_NODES
    elif attempt.offered > len(lines):
        yield NODES
    refused = [line for line in lines if line.verdict == REFUSED]
    if any(not parse_refusal(line).counts and not parse_refusal(line).bare for line in refused):
        yield REASONS
    if any(line.verdict == FITS and not line.is_exact for line in lines):
        yield SCORES
    if any(line.container == UNKNOWN for line in refused) and len(attempt.list_requesting()) != 1:
        yield REFUSING


def _iterate_device_gaps(nodes: Mapping[str, NodeLine], rows: Rows, complete_keys: Keys) -> Iterator[str]:
    if not _has_all_devices(nodes, rows, complete_keys):
        yield DEVICES
    if any(not node for _, node in rows):
        yield NODES_OF_DEVICES


def _has_all_devices(nodes: Mapping[str, NodeLine], rows: Rows, complete_keys: Keys) -> bool:
    """Tell whether every device of the refused nodes has a line, and at least one device of each fitting node."""
    judged = {node for _, node in rows}
    for name, line in nodes.items():
        if line.verdict == FITS and name not in judged:
            return False
        if line.verdict == REFUSED and not parse_refusal(line).bare and (line.container, name) not in complete_keys:
            return False
    return True
