"""Name of a Kubernetes cluster in everything that several clusters share. Pure, and without pydantic."""

import re
from typing import Final

DEFAULT_CLUSTER: Final = "default"
"""Name for an installation with one cluster."""
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
