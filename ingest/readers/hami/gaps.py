"""What the log leaves open about an attempt: the words in ``provenance.not_reported``, explained in docs/sources.md."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ingest.readers.hami.attempt import UNKNOWN, HamiAttempt, NodeLine
from ingest.readers.hami.tables import Keys, Rows, refusal_of
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


def gaps_of(
    attempt: HamiAttempt, requests: Sequence[Request], nodes: Mapping[str, NodeLine], rows: Rows, whole: Keys
) -> list[str]:
    """Which parts of the attempt the log does not report. ``whole``: as of ``tables.whole_rows``."""
    gaps = list(_request_gaps(attempt, requests))
    # An attempt that ended with an error before any node was judged has no nodes to report.
    if not attempt.error or nodes:
        gaps += _node_gaps(attempt, nodes)
        gaps += _device_gaps(nodes, rows, whole)
    return gaps


def _request_gaps(attempt: HamiAttempt, requests: Sequence[Request]) -> Iterator[str]:
    if attempt.requests is None:
        yield REQUESTS
    if not requests or not all(request.container for request in requests):
        yield CONTAINERS


def _node_gaps(attempt: HamiAttempt, nodes: Mapping[str, NodeLine]) -> Iterator[str]:
    lines = nodes.values()
    if attempt.offered is None:
        yield OFFERED_NODES
    elif attempt.offered > len(lines):
        yield NODES
    refused = [line for line in lines if line.verdict == REFUSED]
    if any(not refusal_of(line).counts and not refusal_of(line).bare for line in refused):
        yield REASONS
    if any(line.verdict == FITS and not line.is_exact for line in lines):
        yield SCORES
    if any(line.container == UNKNOWN for line in refused) and len(attempt.requesting()) != 1:
        yield REFUSING


def _device_gaps(nodes: Mapping[str, NodeLine], rows: Rows, whole: Keys) -> Iterator[str]:
    if not _has_all_devices(nodes, rows, whole):
        yield DEVICES
    if any(not node for _, node in rows):
        yield NODES_OF_DEVICES


def _has_all_devices(nodes: Mapping[str, NodeLine], rows: Rows, whole: Keys) -> bool:
    """True where every device of the refused nodes has a line, and at least one of each fitting node."""
    judged = {node for _, node in rows}
    for name, line in nodes.items():
        if line.verdict == FITS and name not in judged:
            return False
        if line.verdict == REFUSED and not refusal_of(line).bare and (line.container, name) not in whole:
            return False
    return True
