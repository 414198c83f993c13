"""What to check where nothing is known."""

from datetime import datetime

from api.http.errors import NotFoundError
from schemas.codec.records import rfc3339

_WATCHED = (
    "Is somebody watching the cluster: `python -m ingest kube-events`, or the scheduler. Does `python -m pipeline "
    "placements` run: ask its /readyz."
)


def unknown_pod(namespace: str, name: str) -> NotFoundError:
    pod = f"kubectl -n {namespace} get pod {name}"
    return NotFoundError(
        f"no scheduling attempt of pod {namespace}/{name} is known",
        f"Does the pod exist: `{pod}`. Is it this scheduler's: `{pod} -o jsonpath='{{.spec.schedulerName}}'`. Does it "
        "ask for devices (only such pods are recorded): "
        f"`{pod} -o jsonpath='{{.spec.containers[*].resources.limits}}'`. "
        "Do the scheduler and the worker run: ask the /readyz of each; `python -m pipeline worker` starts a worker.",
    )


def unseen_pod(namespace: str, name: str) -> NotFoundError:
    return NotFoundError(
        f"pod {namespace}/{name} was never seen, and no scheduling attempt of it is known",
        f"Does the pod exist: `kubectl -n {namespace} get pod {name}`. {_WATCHED}",
    )


def unseen_node(node: str, at: datetime | None, first_seen: datetime | None) -> NotFoundError:
    if at and first_seen:
        return NotFoundError(
            f"nothing is known of node {node} as it was at {rfc3339(at)}",
            f"What is known of it begins at {rfc3339(first_seen)}: ask for that time or later.",
        )
    return NotFoundError(
        f"nothing is known of node {node}",
        f"Does the node exist, by this name: `kubectl get node {node}`. {_WATCHED}",
    )
