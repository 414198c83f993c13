"""Claims that a controller makes from the templates of a pod, so that a pod that does not exist yet can be judged."""

from collections.abc import Iterable, Mapping
from typing import Any

from runtime.kubernetes.object_fields import get_object, get_text, iterate_objects
from schemas.json_types import Json


def make_claims(pod: Mapping[str, Any], objects: Iterable[Any]) -> tuple[Json, list[Json]]:
    """Make the pod's claims from its templates: the pod with their names in its status, and the claims.

    A template that is not among the objects makes none, and kube-scheduler does not look at the pod.
    """
    namespace, name, uid = (get_text(pod, "metadata", field) for field in ("namespace", "name", "uid"))
    templates = {
        (get_text(item, "metadata", "namespace") or "default", get_text(item, "metadata", "name")): item
        for item in objects
        if isinstance(item, Mapping) and item.get("kind") == "ResourceClaimTemplate"
    }
    claims, statuses = list[Json](), list[Json]()
    for reference in iterate_objects(pod, "spec", "resourceClaims"):
        template = templates.get((namespace, get_text(reference, "resourceClaimTemplateName")))
        if template is not None:
            claim = f"{name}-{get_text(reference, 'name')}"
            claims.append(_make_claim(template, namespace, claim, (name, uid)))
            statuses.append({"name": get_text(reference, "name"), "resourceClaimName": claim})
    if not claims:
        return dict(pod), []
    return {**pod, "status": {**get_object(pod, "status"), "resourceClaimStatuses": statuses}}, claims


def _make_claim(template: Mapping[str, Any], namespace: str, name: str, owner: tuple[str, str]) -> Json:
    reference = {"apiVersion": "v1", "kind": "Pod", "name": owner[0], "uid": owner[1], "controller": True}
    metadata = {"namespace": namespace, "name": name, "uid": f"{owner[1]}-{name}", "ownerReferences": [reference]}
    return {
        "apiVersion": template.get("apiVersion", "resource.k8s.io/v1"),
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": dict(get_object(template, "spec", "spec")),
    }
