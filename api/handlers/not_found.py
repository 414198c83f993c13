"""404 answers: each names the object without a record, and what to check."""

from datetime import datetime
from typing import Final

from api.http.errors import NotFoundError
from schemas.codec.records import format_rfc3339
from schemas.indices import ATTEMPTS, DEVICES, NODE_STATES

_CHECK_OBSERVERS: Final = (
    "Does a process observe the cluster: the scheduler, or `schedulerlog ingest kube-events`? "
    "Does `schedulerlog pipeline placements` run? GET /readyz of each shows it."
)


class UnknownNameError(NotFoundError):
    """Name of a pod or, without a namespace, of a node, without any record: its answer has similar names."""

    def __init__(self, error: str, next_step: str, cluster: str, namespace: str, name: str) -> None:
        super().__init__(error, next_step)
        self.cluster, self.namespace, self.name = cluster, namespace, name


def to_no_attempt_of_pod_error(cluster: str, namespace: str, name: str) -> NotFoundError:
    """Build the error for a request that only a scheduling attempt could answer."""
    get_pod = f"kubectl -n {namespace} get pod {name}"
    return UnknownNameError(
        f"no scheduling attempt of pod {namespace}/{name} is recorded",
        f"Does the pod exist: `{get_pod}`? Is it of this scheduler: `{get_pod} -o jsonpath='{{.spec.schedulerName}}'`? "
        "Does it ask for devices (only such pods are recorded): "
        f"`{get_pod} -o jsonpath='{{.spec.containers[*].resources.limits}}'`? Do the scheduler and the worker "
        "(`schedulerlog pipeline worker`) run? GET /readyz of each shows it.",
        cluster,
        namespace,
        name,
    )


def to_no_attempt_error(cluster: str, attempt_id: str) -> NotFoundError:
    return NotFoundError(
        f"no attempt {attempt_id} is recorded in cluster {cluster}",
        "Is it of another cluster (GET /api/v1/clusters)? The index shows an attempt about a second after its "
        f"decision, and keeps it for {ATTEMPTS.retention.days} days.",
    )


def to_other_pod_error(namespace: str, name: str, attempt_id: str) -> NotFoundError:
    return NotFoundError(
        f"attempt {attempt_id} is not one of pod {namespace}/{name}",
        "Leave the parameter out for the pod's latest attempt; its history lists the ids of all.",
    )


def to_no_states_error(subject: str) -> NotFoundError:
    return NotFoundError(
        f"no node states {subject} are in the index",
        f"They are kept for {NODE_STATES.retention.days} days, and device records for {DEVICES.retention.days}. Does "
        "the index writer run (`schedulerlog pipeline index`)? Is the cluster's name right (GET /api/v1/clusters)?",
    )


def to_unobserved_pod_error(cluster: str, namespace: str, name: str) -> NotFoundError:
    """Build the error for a request that an observation of the pod could answer, too."""
    return UnknownNameError(
        f"pod {namespace}/{name} was never observed, and no scheduling attempt of it is recorded",
        f"Does the pod exist: `kubectl -n {namespace} get pod {name}`? {_CHECK_OBSERVERS}",
        cluster,
        namespace,
        name,
    )


def to_unobserved_node_error(
    cluster: str, node: str, moment: datetime | None, first_observed_at: datetime | None
) -> NotFoundError:
    """Build the error for a node without records, until ``moment`` if given; its first is of ``first_observed_at``."""
    if moment and first_observed_at:
        return NotFoundError(
            f"nothing is recorded of node {node} at {format_rfc3339(moment)}",
            f"Its first record is of {format_rfc3339(first_observed_at)}: ask for that time or later.",
        )
    return UnknownNameError(
        f"nothing is recorded of node {node}",
        f"Does the node exist under this name: `kubectl get node {node}`? {_CHECK_OBSERVERS}",
        cluster,
        "",
        node,
    )
