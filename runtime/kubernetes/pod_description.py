"""Origin of a pod and the people who wait for it, from the pod's object only. Pure."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from runtime.kubernetes.object_fields import Fields, get_object, get_text, iterate_objects, parse_moment
from schemas.events import Owner, PodDescription

# The most particular name first: each counts only if the pod has none of the names above it.
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


def describe_pod(pod: Fields, label_names: Collection[str] = ()) -> PodDescription:
    """Describe the pod from its object; ``label_names`` are the labels to include."""
    metadata, spec = get_object(pod, "metadata"), get_object(pod, "spec")
    labels = get_object(metadata, "labels")
    # Schedulers' names are labels here and annotations there.
    marks = {**get_object(metadata, "annotations"), **labels}
    return PodDescription(
        created_at=parse_moment(get_text(metadata, "creationTimestamp")),
        owners=list_owners(pod),
        pod_group=_get_first(marks, _GROUP_NAMES),
        queue=_get_first(marks, _QUEUE_NAMES),
        priority_class=get_text(spec, "priorityClassName"),
        priority=_parse_priority(spec.get("priority")),
        service_account=get_text(spec, "serviceAccountName"),
        labels={name: value for name in label_names if isinstance(value := labels.get(name), str)},
    )


def list_owners(pod: Fields) -> list[Owner]:
    """List the pod's controller, and its Deployment if the controller is a ReplicaSet of one."""
    controller = get_controller(pod)
    if controller is None:
        return []
    # A Deployment calls its ReplicaSets by its own name and the hash that it writes on their pods.
    suffix = f"-{get_text(pod, 'metadata', 'labels', _HASH)}"
    is_deployments = controller.kind == "ReplicaSet" and len(suffix) > 1 and controller.name.endswith(suffix)
    deployment = controller.name.removesuffix(suffix) if is_deployments else ""
    return [controller, Owner(kind="Deployment", name=deployment)] if deployment else [controller]


def get_controller(obj: Fields) -> Owner | None:
    """Get the object that controls this one, as its owner references name it."""
    for reference in iterate_objects(obj, "metadata", "ownerReferences"):
        kind, name = get_text(reference, "kind"), get_text(reference, "name")
        # Other owners own an object only to have it deleted with them.
        if reference.get("controller") is True and kind and name:
            return Owner(kind=kind, name=name, api_version=get_text(reference, "apiVersion"))
    return None


def _get_first(marks: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((value for name in names if isinstance(value := marks.get(name), str) and value), "")


def _parse_priority(value: Any) -> int | None:
    # Kubernetes has 32 bits for it.
    is_number = isinstance(value, int) and not isinstance(value, bool) and -(2**31) <= value < 2**31
    return value if is_number else None
