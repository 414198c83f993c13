"""Sources of facts, and facts that are missing."""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Literal, NamedTuple

Cause = Literal[
    "index-down",
    "outside-cluster",
    "another-cluster",
    "not-allowed",
    "api-server-down",
    "not-recorded",
    "not-read",
    "not-given",
]
"""Cause of a missing fact."""


class Unknown(NamedTuple):
    """A missing fact about ``subject`` (``devices``, ``pod``, ``nodes``, …); ``detail`` has the words of the
    refusal."""

    subject: str
    cause: Cause
    detail: str = ""


class Evidence(NamedTuple):
    """Source of a fact: a record by its id, or an object of the API server by its path."""

    kind: str
    """``attempt``, ``bind``, ``devices``, ``pod``, ``claim``, ``quota``, ``node``, ``event``, ``scheduler``, …"""
    record: str
    time: datetime | None = None
    reported_by: str = ""
    numbers: Mapping[str, int] = MappingProxyType({})
    """Values by name with the unit."""
    words: str = ""
    """The source's text, word for word, if it has one."""
