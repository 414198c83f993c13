"""The values of the ways to the API from outside: an Ingress, a route of a Gateway, and a proxy that logs people in."""

from typing import Annotated

from pydantic import Field

from deploy.helm_from_kustomize.value_types import ChartSection, Name, OptionalName


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
