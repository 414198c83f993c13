"""Values that the API server writes into a new pod before a scheduler sees it.

The rules are Kubernetes' defaults of the Pod (``SetDefaults_Pod``): an amount that only limits name is requested too,
and a host network makes every port a host port.
"""

from collections.abc import Mapping
from typing import Any, Final

from schemas.json_types import Json

_CONTAINERS: Final = ("initContainers", "containers")


def write_defaults(pod: Mapping[str, Any]) -> Json:
    """Return the pod with its defaults; what it names stays as it is."""
    spec = pod.get("spec")
    if not isinstance(spec, Mapping):
        return dict(pod)
    has_host_network = spec.get("hostNetwork") is True
    listed = {
        field: [_write_container(container, has_host_network=has_host_network) for container in containers]
        for field in _CONTAINERS
        if isinstance(containers := spec.get(field), list)
    }
    return {**pod, "spec": {**spec, **listed}}


def _write_container(container: Any, *, has_host_network: bool) -> Any:
    if not isinstance(container, Mapping):
        return container
    written = dict(container)
    resources = container.get("resources")
    if isinstance(resources, Mapping) and isinstance(limits := resources.get("limits"), Mapping):
        requests = resources.get("requests")
        named = requests if isinstance(requests, Mapping) else {}
        written["resources"] = {**resources, "requests": {**limits, **named}}
    if has_host_network and isinstance(ports := container.get("ports"), list):
        written["ports"] = [_write_port(port) for port in ports]
    return written


def _write_port(port: Any) -> Any:
    if not isinstance(port, Mapping) or port.get("hostPort"):
        return port
    return {**port, "hostPort": port.get("containerPort", 0)}
