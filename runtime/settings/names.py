"""Names of clusters, labels and objects, checked before they become part of a path. Pure, and without pydantic."""

import re
from typing import Final

DEFAULT_CLUSTER: Final = "default"
"""Name for an installation with one cluster."""
ALERTS_GROUP: Final = "schedulerlog-alerts"
"""Default consumer group of the process that evaluates alert rules. The metadata of its offset on the topic of alerts
is the time up to which they are evaluated."""
_MAX_CHARACTERS: Final = 63
# Equal to `schemas.events.ClusterName`: this module imports nothing of the project.
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?", re.ASCII)


def check_cluster_name(text: str) -> str:
    """Check the text and return it unchanged. Raises ``ValueError`` if it can't name a cluster."""
    if not _NAME.fullmatch(text):
        raise ValueError(
            f"{text!r} can't name a cluster: write at most {_MAX_CHARACTERS} lower-case letters, digits, - and ., "
            "with a letter or digit at both ends, as in prod-east"
        )
    return text


def to_cluster_name(text: str) -> str:
    """Convert any text to a valid name: a different one for most other texts; empty if no character is allowed."""
    allowed = re.sub(r"[^a-z0-9.-]+", "-", text.lower())
    return allowed.strip("-.")[:_MAX_CHARACTERS].rstrip("-.")


_KEY: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9.]{0,252}/)?[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?", re.ASCII)


def parse_label_names(text: str) -> tuple[str, ...]:
    """Parse names of labels between commas, ``team,example.com/cost-center``. Raises ``ValueError``."""
    names = tuple(dict.fromkeys(name for part in text.split(",") if (name := part.strip())))
    if wrong := next((name for name in names if not _KEY.fullmatch(name)), None):
        raise ValueError(f"{wrong!r} is not the name of a label: write for example team,example.com/cost")
    return names


# Only ASCII: names contain no letters and digits of other scripts.
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)


def find_label_problem(name: str) -> str | None:
    """Find the problem of ``name`` as an RFC 1123 label (namespaces); None for a valid one."""
    if not name:
        return "is empty"
    if len(name) > 63:
        return f"has {len(name)} characters, RFC 1123 labels have at most 63"
    return _find_part_problem(name)


def find_subdomain_problem(name: str) -> str | None:
    """Find the problem of ``name`` as an RFC 1123 subdomain (pods and nodes); None for a valid one."""
    if not name:
        return "is empty"
    if len(name) > 253:
        return f"has {len(name)} characters, RFC 1123 subdomains have at most 253"
    return next((problem for part in name.split(".") if (problem := _find_part_problem(part))), None)


def _find_part_problem(part: str) -> str | None:
    if _LABEL.fullmatch(part):
        return None
    if forbidden := re.sub(r"[-a-z0-9]", "", part, flags=re.ASCII):
        return f"has {forbidden[0]!a}, but RFC 1123 allows only a-z, 0-9 and '-'"
    return "has a part that does not begin and end with a letter or a digit, as RFC 1123 requires"
