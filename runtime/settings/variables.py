"""Names of environment variables, and variables that look like settings and are none: mistyped, or of another version.

``variable_names.txt`` lists the names of all processes, made by ``make generate``: a process does not import the
others, and they share their environment.
"""

import difflib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

PREFIX: Final = "SCHEDULERLOG_"
KAFKA: Final = f"{PREFIX}KAFKA_BOOTSTRAP_SERVERS"
CLUSTER_NAME: Final = f"{PREFIX}CLUSTER_NAME"
POD_LABELS: Final = f"{PREFIX}POD_LABELS"
METRICS_ADDRESS: Final = f"{PREFIX}METRICS_ADDRESS"
NAMES_FILE: Final = Path(__file__).with_name("variable_names.txt")
# Kubernetes puts these into every pod, for each Service of the namespace.
_OF_A_SERVICE: Final = re.compile(
    r"_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$"
)
# Of this project, but not of its processes: the embedded servers, tests, and what only compose reads.
_OTHERS: Final = re.compile(rf"{PREFIX}(EMBEDDED|TEST|DEMO|BENCH)_|{PREFIX}([A-Z]+_)?IMAGE$")


def derive_variable(field: str) -> str:
    """Derive the variable of a field of a settings model."""
    return f"{PREFIX}{field.upper()}"


@cache
def read_variable_names() -> frozenset[str]:
    """Read the names of all variables that any process reads."""
    return frozenset(NAMES_FILE.read_text(encoding="ascii").split())


def warn_of_unknown(environment: Iterable[str]) -> str:
    """Warn of unknown variables in one line, each with the nearest existing one; empty without any."""
    unknown_names = list(_find_unknown(sorted(environment)))
    return f"without effect: {', '.join(unknown_names)}" if unknown_names else ""


def _find_unknown(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        if name.startswith(PREFIX) and not (
            name in read_variable_names() or _OF_A_SERVICE.search(name) or _OTHERS.match(name)
        ):
            nearest = difflib.get_close_matches(name, read_variable_names(), n=1, cutoff=0.6)
            yield f"{name} (do you mean {nearest[0]}?)" if nearest else name
