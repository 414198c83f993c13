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


def _expand(verbs: str, group: str, resources: str, namespace: str = "", name: str = "") -> list[Right]:
    return [Right(verb, group, resource, namespace, name) for resource in resources.split() for verb in verbs.split()]


RIGHTS: Final[Mapping[str, tuple[Right, ...]]] = {
    "kube-events": (
        *_expand("list watch", "", "pods nodes"),
        *_expand("list watch", "events.k8s.io", "events"),
        *_expand("list watch", "resource.k8s.io", "resourceclaims"),
        *_expand("get", "apps", "replicasets deployments"),
        *_expand("get", "batch", "jobs cronjobs"),
    ),
    "events": (
        *_expand("create get list patch", "events.k8s.io", "events"),
        *_expand("get", "", "pods"),
    ),
    "hami-log": (
        *_expand("list", "", "pods", "kube-system"),
        *_expand("get", "", "pods/log", "kube-system"),
        *_expand("list", "", "nodes"),
    ),
    "kai-log": (
        *_expand("list", "", "pods", "kai-scheduler"),
        *_expand("get", "", "pods/log", "kai-scheduler"),
    ),
    "scheduler": (
        *_expand("get list watch patch", "", "nodes pods"),
        *_expand("list watch", "", "resourcequotas"),
        *_expand("create", "", "pods/binding"),
        *_expand("get", "coordination.k8s.io", "leases", INSTALLED, "schedulerlog-scheduler"),
    ),
    "notify": (
        *_expand("get list", "schedulerlog.io", "pods/schedulerlog"),
        *_expand("get", "", "pods namespaces"),
        *_expand("get", "batch", "jobs cronjobs"),
        *_expand("get", "apps", "deployments replicasets statefulsets daemonsets"),
        *_expand("get patch", "", "configmaps", INSTALLED, "schedulerlog-notify"),
        *_expand("create", "", "configmaps", INSTALLED),
        *_expand("get update", "coordination.k8s.io", "leases", INSTALLED, "schedulerlog-notify"),
        *_expand("create", "coordination.k8s.io", "leases", INSTALLED),
    ),
    "certificate": (
        *_expand("create", "", "secrets", INSTALLED),
        *_expand("get", "", "secrets", INSTALLED, "schedulerlog-api-tls"),
        *_expand("patch", "", "secrets", INSTALLED, "schedulerlog-api-tls"),
    ),
    # Of Kubernetes' own role system:auth-delegator.
    "api": (
        *_expand("create", "authentication.k8s.io", "tokenreviews"),
        *_expand("create", "authorization.k8s.io", "subjectaccessreviews"),
        *_expand("get", "", "pods"),
        *_expand("list", "", "nodes persistentvolumeclaims resourcequotas"),
        *_expand("list", "events.k8s.io", "events"),
        *_expand("list", "storage.k8s.io", "storageclasses"),
    ),
}
"""By process; its account is called ``schedulerlog-`` and this."""
