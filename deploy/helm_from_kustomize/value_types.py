"""Forms of the chart's values: maps, quantities, names, addresses and processes."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

Quantity = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$")]
Name = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)]
OptionalName = Annotated[str, Field(pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$", max_length=253)]
Address = Annotated[str, Field(pattern=r"^https?://[^\s/]+\S*$")]
Process = Literal[
    "all", "worker", "index", "placements", "alerts", "api", "kube-events", "hami-log", "kai-log", "raw-logs", "events",
    "alertmanager", "notify", "mcp", "scheduler", "kube-scheduler", "provision", "retention", "certificate", "roles",
    "policies", "dashboards",
]  # fmt: skip
Replicated = Literal[
    "worker", "index", "placements", "alerts", "api", "kube-events", "hami-log", "kai-log", "raw-logs", "events",
    "alertmanager",
]  # fmt: skip
"""Processes of which there may be several pods."""


class ChartSection(BaseModel):
    """A map of the values."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True, use_attribute_docstrings=True
    )
