"""The rights of each process at the API server, as deploy/kustomize gives them; a test compares the two. Pure."""

from collections.abc import Mapping
from typing import Final, NamedTuple

INSTALLED: Final = "schedulerlog"
"""The namespace of deploy/; where it is installed in another one, that is meant."""


class Right(NamedTuple):
    verb: str
    group: str
    resource: str
    """With its subresource, ``pods/log``."""
    namespace: str = ""
    """Empty: everywhere."""
    name: str = ""
    """Empty: of every name."""


def _each(verbs: str, group: str, resources: str, namespace: str = "", name: str = "") -> list[Right]:
    return [Right(verb, group, resource, namespace, name) for resource in resources.split() for verb in verbs.split()]


RIGHTS: Final[Mapping[str, tuple[Right, ...]]] = {
    "kube-events": (
        *_each("list watch", "", "pods nodes"),
        *_each("list watch", "events.k8s.io", "events"),
        *_each("list watch", "resource.k8s.io", "resourceclaims"),
        *_each("get", "apps", "replicasets deployments"),
        *_each("get", "batch", "jobs cronjobs"),
    ),
    "events": (
        *_each("create get list patch", "events.k8s.io", "events"),
        *_each("get", "", "pods"),
    ),
    "hami-log": (
        *_each("list", "", "pods", "kube-system"),
        *_each("get", "", "pods/log", "kube-system"),
        *_each("list", "", "nodes"),
    ),
    "kai-log": (
        *_each("list", "", "pods", "kai-scheduler"),
        *_each("get", "", "pods/log", "kai-scheduler"),
    ),
    "scheduler": (
        *_each("get list watch patch", "", "nodes pods"),
        *_each("list watch", "", "resourcequotas"),
        *_each("create", "", "pods/binding"),
        *_each("create", "coordination.k8s.io", "leases", INSTALLED),
        *_each("get update", "coordination.k8s.io", "leases", INSTALLED, "schedulerlog-scheduler"),
    ),
    "certificate": (
        *_each("create", "", "secrets", INSTALLED),
        *_each("get", "", "secrets", INSTALLED, "schedulerlog-api-tls"),
    ),
    # Of Kubernetes' own role system:auth-delegator.
    "api": (
        *_each("create", "authentication.k8s.io", "tokenreviews"),
        *_each("create", "authorization.k8s.io", "subjectaccessreviews"),
        *_each("get", "", "pods persistentvolumeclaims"),
        *_each("list", "", "nodes resourcequotas"),
        *_each("list", "events.k8s.io", "events"),
        *_each("get", "storage.k8s.io", "storageclasses"),
    ),
}
"""By process; its account is called ``schedulerlog-`` and this."""
