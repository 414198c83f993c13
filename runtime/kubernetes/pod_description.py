"""Origin of a pod and the people who wait for it, from the pod's object only. Pure."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from runtime.kubernetes.object_fields import Fields, entries, moment, part, text
from schemas.events import Owner, PodDescription

# By what is most particular to a pod: a name further down is used where none of those above it is there.
_GROUP_NAMES: Final = (
    "scheduling.x-k8s.io/pod-group",  # coscheduling
    "scheduling.k8s.io/group-name",  # Volcano
    "scheduling.volcano.sh/group-name",  # Volcano, newer
    "pod-group-name",  # KAI
    "kueue.x-k8s.io/pod-group-name",  # Kueue, for plain pods
    "training.kubeflow.org/job-name",  # Kubeflow: the replicas of a training job
    "ray.io/cluster",  # Ray: head and workers
)
_QUEUE_NAMES: Final = (
    "kueue.x-k8s.io/queue-name",
    "kai.scheduler/queue",
    "runai/queue",  # KAI before it was called so
    "scheduling.volcano.sh/queue-name",
    "volcano.sh/queue-name",
)
_HASH: Final = "pod-template-hash"


def pod_description(pod: Fields, label_names: Collection[str] = ()) -> PodDescription:
    """Describe the pod from its object; ``label_names`` are the labels to keep."""
    metadata, spec = part(pod, "metadata"), part(pod, "spec")
    labels = part(metadata, "labels")
    # Schedulers' names are labels here and annotations there.
    marks = {**part(metadata, "annotations"), **labels}
    return PodDescription(
        created_at=moment(text(metadata, "creationTimestamp")),
        owners=owners_in(pod),
        pod_group=_first(marks, _GROUP_NAMES),
        queue=_first(marks, _QUEUE_NAMES),
        priority_class=text(spec, "priorityClassName"),
        priority=_priority(spec.get("priority")),
        service_account=text(spec, "serviceAccountName"),
        labels={name: value for name in label_names if isinstance(value := labels.get(name), str)},
    )


def owners_in(pod: Fields) -> list[Owner]:
    """List the pod's controller, and its Deployment where the controller is a ReplicaSet of one."""
    controller = controller_of(pod)
    if controller is None:
        return []
    # A Deployment calls its ReplicaSets by its own name and the hash that it writes on their pods.
    suffix = f"-{text(pod, 'metadata', 'labels', _HASH)}"
    is_deployments = controller.kind == "ReplicaSet" and len(suffix) > 1 and controller.name.endswith(suffix)
    deployment = controller.name.removesuffix(suffix) if is_deployments else ""
    return [controller, Owner(kind="Deployment", name=deployment)] if deployment else [controller]


def controller_of(found: Fields) -> Owner | None:
    """Get the object that controls this one, as its owner references name it."""
    for reference in entries(found, "metadata", "ownerReferences"):
        kind, name = text(reference, "kind"), text(reference, "name")
        # Others own an object only to have it deleted with them.
        if reference.get("controller") is True and kind and name:
            return Owner(kind=kind, name=name, api_version=text(reference, "apiVersion"))
    return None


def _first(marks: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((value for name in names if isinstance(value := marks.get(name), str) and value), "")


def _priority(value: Any) -> int | None:
    # Kubernetes has 32 bits for it.
    is_number = isinstance(value, int) and not isinstance(value, bool) and -(2**31) <= value < 2**31
    return value if is_number else None
