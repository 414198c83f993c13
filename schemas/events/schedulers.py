"""Schedulers: their versions and settings."""

import json
from collections.abc import Mapping
from datetime import datetime
from hashlib import blake2b
from typing import Annotated, ClassVar

from pydantic import Field

from ..ids import count_microseconds
from .base import TYPE_PREFIX, Event, build_source
from .field_types import Moment


class SchedulerObserved(Event):
    """A scheduler's version and settings, published at its start and when they change."""

    TYPE: ClassVar[str] = TYPE_PREFIX + "scheduler.observed.v1"

    scheduler: Annotated[str, Field(min_length=1)]
    observed_at: Moment
    instance: str = ""
    """The pod or host that it runs as; empty where it is not known."""
    implementation: str = ""
    """``schedulerlog``, ``HAMi``, ``KAI``, …"""
    version: str = ""
    settings: dict[str, str] = Field(default_factory=dict)
    """By the name of the flag or the path in its configuration; without secrets."""
    settings_digest: Annotated[str, Field(min_length=1)]
    """Equal for equal version and settings; attempts name it. See ``compute_settings_digest``."""

    @property
    def id(self) -> str:
        return f"{self.key}/observed/{count_microseconds(self.observed_at)}"

    @property
    def key(self) -> str:
        return f"{self.cluster}/{self.scheduler}/{self.instance}"

    @property
    def time(self) -> datetime:
        return self.observed_at

    @property
    def source(self) -> str:
        return build_source(self.cluster, self.scheduler)


def compute_settings_digest(implementation: str, version: str, settings: Mapping[str, str]) -> str:
    """Compute 16 hexadecimal digits that are equal for equal arguments."""
    facts = json.dumps([implementation, version, sorted(settings.items())])
    return blake2b(facts.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
