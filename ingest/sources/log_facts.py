"""Facts about a log that its lines do not have: the time zone, and the cluster's nodes."""

from collections.abc import Callable
from datetime import UTC, tzinfo
from pathlib import Path
from typing import TypeVar

from ingest.errors import MistakeError

T = TypeVar("T")


def read_node_list(nodes: Path, parse: Callable[[bytes], T]) -> T:
    """Read the output of ``kubectl get nodes -o json`` from a file and parse it. Raises ``MistakeError``."""
    try:
        return parse(nodes.read_bytes())
    except OSError as error:
        raise MistakeError(f"{nodes}: {error.strerror}") from None
    except ValueError as error:
        raise MistakeError(f"{nodes}: {error}") from None


def parse_zone(name: str) -> tzinfo:
    """Parse the value of ``--timezone``. Raises ``MistakeError``."""
    if name == "UTC":
        return UTC
    # Imported late: most logs are in UTC, and a command that answers at once would wait for it.
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise MistakeError(f"--timezone {name}: no such zone; write it as in Asia/Shanghai") from None
