"""The name of a Kubernetes cluster in everything that several clusters share. Pure, and without pydantic."""

import re
from typing import Final

DEFAULT_CLUSTER: Final = "default"
"""For an installation with one cluster, which needs no name for it."""
_MAX_CHARACTERS: Final = 63
# The same as `schemas.events.ClusterName`: this package imports nothing of the project, and that one no command line.
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?", re.ASCII)


def cluster_name(text: str) -> str:
    """Return the text unchanged. Raises ``ValueError`` where it can't name a cluster."""
    if not _NAME.fullmatch(text):
        raise ValueError(
            f"{text!r} can't name a cluster: write at most {_MAX_CHARACTERS} lower-case letters, digits, - and ., "
            "with a letter or digit at both ends, as in prod-east"
        )
    return text


def as_cluster_name(text: str) -> str:
    """Make a valid name of any text: a different one for most other texts, and empty where no character is allowed."""
    kept = re.sub(r"[^a-z0-9.-]+", "-", text.lower())
    return kept.strip("-.")[:_MAX_CHARACTERS].rstrip("-.")
