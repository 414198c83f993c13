"""Objects of deploy/kustomize: built by the kustomize inside kubectl, applied to the control plane unchanged."""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from dev.embedded.control_plane import ControlPlane
from schemas.json_types import Json

KUSTOMIZE: Final = Path(__file__).parents[3] / "deploy" / "kustomize"
NAMESPACE: Final = "schedulerlog"
OVERLAYS: Final = tuple(sorted(path.name for path in (KUSTOMIZE / "overlays").iterdir()))

DEFINITIONS: Final = Path(__file__).parent / "definitions"
"""CustomResourceDefinitions of the projects whose kinds components use, as they publish them."""

_TEXTS: Final[dict[Path, str]] = {}
"""Output of kustomize for the folders of deploy/, which no test changes: kubectl takes half a second for each."""


def build(cluster: ControlPlane, folder: Path) -> list[Json]:
    """Build the objects of a kustomization."""
    text = _TEXTS.get(folder) or cluster.run_kubectl("kustomize", str(folder))
    if folder.is_relative_to(KUSTOMIZE):
        _TEXTS[folder] = text
    return [item for item in yaml.load_all(text, yaml.CSafeLoader) if item]


def combine(folder: Path, resource: Path, components: Iterable[str]) -> Path:
    """Write a kustomization into the new ``folder`` with these components on top of another one."""
    folder.mkdir(parents=True)

    def to_relative(path: Path) -> str:
        return os.path.relpath(path, folder)

    document = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [to_relative(resource)],
        "components": [to_relative(KUSTOMIZE / "components" / name) for name in components],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(document))
    return folder


def apply(cluster: ControlPlane, objects: Sequence[Json], *flags: str) -> None:
    """Apply as ``kubectl apply -k`` does on the server's side; a field unknown to the API server is an error."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    cluster.run_kubectl("apply", "--server-side", "--validate=strict", *flags, "-f", "-", stdin=text)


@contextmanager
def emptied(cluster: ControlPlane) -> Iterator[None]:
    """Everything that was applied is deleted at the end; the namespaces stay, because deleting one takes seconds, in
    which the next module of tests could not use it."""
    namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kai-scheduler"}}]
    apply(cluster, namespaces)
    try:
        yield
    finally:
        ours = ("-l", "app.kubernetes.io/part-of=schedulerlog", "--wait=false")
        cluster.run_kubectl("delete", "clusterroles,clusterrolebindings,roles,rolebindings", "-A", *ours)
        kinds = "deployments,statefulsets,jobs,cronjobs,services,configmaps,serviceaccounts,poddisruptionbudgets"
        cluster.run_kubectl("delete", kinds, "-n", NAMESPACE, *ours)
        cluster.run_kubectl("delete", "pods", "-n", NAMESPACE, "--all", "--force", "--grace-period=0", "--wait=false")


def define_others_kinds(cluster: ControlPlane) -> None:
    definitions = read_definitions()
    apply(cluster, definitions)
    names = [f"crd/{item['metadata']['name']}" for item in definitions]
    cluster.run_kubectl("wait", "--for=condition=Established", *names, "--timeout=60s")


def read_definitions() -> list[Json]:
    return [definition for path in sorted(DEFINITIONS.glob("*.json")) for definition in json.loads(path.read_bytes())]


def build_definition(api_version: str, kind: str) -> Json:
    """Build a definition that takes every content: no test with it shows that a cluster's own takes ours."""
    group, _, version = api_version.partition("/")
    plural = f"{kind.lower()}s"
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
    names = {"kind": kind, "plural": plural, "singular": kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": [served]},
    }


def list_pod_templates(objects: Iterable[Json]) -> Iterator[tuple[str, Json]]:
    """List kind and name of each workload, and the template of its pods."""
    for item in objects:
        spec: Any = item.get("spec") or {}
        template = spec.get("jobTemplate", {}).get("spec", spec).get("template")
        if template and "spec" in template:
            claims = [claim["metadata"]["name"] for claim in spec.get("volumeClaimTemplates", ())]
            # As the controller adds them.
            volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
            pod = template["spec"]
            yield f"{item['kind']}/{item['metadata']['name']}", pod | {"volumes": [*pod.get("volumes", ()), *volumes]}


def select_kinds(objects: Iterable[Json], *kinds: str) -> list[Json]:
    return [item for item in objects if item["kind"] in kinds]
