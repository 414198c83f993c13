"""Forms of the chart's values: maps, quantities, names, addresses and processes.

And the sections of the ways to the API from outside: an Ingress, a route of a Gateway, and a proxy that logs people in.
"""

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


class IngressPathValues(ChartSection):
    enabled: bool = False
    class_name: OptionalName = ""
    host: OptionalName = ""
    tls_secret: OptionalName = ""
    """Secret with the certificate that browsers see."""
    annotations: dict[str, str] = {"nginx.ingress.kubernetes.io/backend-protocol": "HTTPS"}
    """The API speaks HTTPS: your controller needs to know."""


class GatewayValues(ChartSection):
    enabled: bool = False
    """A route of the Gateway API (docs/access.md); needs the ConfigMap schedulerlog-api-ca."""
    host: OptionalName = ""
    name: Name = "gateway"
    """Your Gateway, and its namespace where it is another one."""
    namespace: OptionalName = ""


class ProxyValues(ChartSection):
    enabled: bool = False
    """The API believes a proxy that logs people in (docs/access.md). Its authority is `ca.crt` of the Secret
    `schedulerlog-proxy-ca`."""
    names: Annotated[list[Name], Field(min_length=1)] = ["schedulerlog-proxy"]
    """Names of its client certificate."""
    user_header: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$")] = "X-Auth-Request-Email"
    groups_header: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$")] = "X-Auth-Request-Groups"
