"""Files of Kubernetes objects, checked: the output of `kubectl get nodes,pods,resourcequotas -A -o yaml`, or by hand.

One or many documents, each an object or a List. Nodes, Pods and ResourceQuotas are checked; other kinds are kept as
they are. The first mistake ends the reading, with file, line, what is wrong and what to write instead. An annotation
that HAMi would reject is not a mistake of the file: its node remains unregistered with that cause.
"""

import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from runtime.files import yaml_lines
from runtime.files.yaml_lines import YamlError, parse_documents
from schemas.json_types import Json

PodKey = tuple[str, str]

_SCALARS: Final = (str, int, float)


@dataclass(slots=True)
class Manifest:
    """Objects of a file. Pods and quotas by (namespace, name)."""

    nodes: dict[str, Json] = field(default_factory=dict)
    pods: dict[PodKey, Json] = field(default_factory=dict)
    quotas: dict[PodKey, Json] = field(default_factory=dict)
    others: list[Json] = field(default_factory=list)
    """Objects of other kinds, as they were read."""

    @property
    def objects(self) -> list[Json]:
        """All objects."""
        return [*self.nodes.values(), *self.pods.values(), *self.quotas.values(), *self.others]

    @property
    def ignored(self) -> Counter[str]:
        """Number of the objects of other kinds, by kind."""
        return Counter(str(item.get("kind")) for item in self.others)


class ManifestError(Exception):
    """Mistake in the file. The text is `file:line: what is wrong, what to write instead`."""

    def __init__(self, path: Path, line: int | None, problem: str) -> None:
        super().__init__(f"{path}:{line}: {problem}" if line else f"{path}: {problem}")
        self.path, self.line, self.problem = path, line, problem


def read(path: Path) -> Manifest:
    """Read the objects of the file. Raises `ManifestError`."""
    return parse(_read_bytes(path), path)


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ManifestError(path, None, f"can't be read: {error.strerror}") from None


def parse(text: bytes, path: Path, manifest: Manifest | None = None) -> Manifest:
    """Parse the objects of `text` into the manifest, or a new one; mistakes name it `path`. Raises `ManifestError`."""
    manifest = manifest or Manifest()
    try:
        for line, document in parse_documents(text):
            if document is not None:
                _take(manifest, document, line)
    except YamlError as error:
        raise ManifestError(path, error.line, error.problem) from None
    return manifest


def read_pod(path: Path) -> Json:
    """Read the one Pod that the file describes. Raises `ManifestError`."""
    manifest = read(path)
    if len(manifest.pods) != 1:
        raise ManifestError(path, None, f"describes {len(manifest.pods)} pods, write exactly one object of kind Pod")
    (pod,) = manifest.pods.values()
    return pod


def _take(manifest: Manifest, document: Any, line: int) -> None:
    if not isinstance(document, yaml_lines.Mapping):
        raise YamlError(line, f"is {_describe_kind(document)}, write a Kubernetes object (apiVersion, kind, metadata)")
    kind = document.get("kind")
    if not isinstance(kind, str):
        raise YamlError(document.get_line("kind"), "has no kind, write kind: Node, kind: Pod or kind: List")
    # kubectl writes kind List, the API itself NodeList or PodList.
    if kind == "List" or (kind.endswith("List") and "items" in document):
        for item in _read_list(document, "items"):
            _take(manifest, item, document.get_line("items"))
    elif kind in _KINDS:
        _KINDS[kind](manifest, document)
    else:
        manifest.others.append(document)


def _take_node(manifest: Manifest, node: yaml_lines.Mapping) -> None:
    metadata = _read_metadata(node)
    status = _read_mapping(node, "status")
    _check_quantities(status, "allocatable")
    _keep(manifest.nodes, metadata["name"], node, f"Node {metadata['name']}")


def _take_pod(manifest: Manifest, pod: yaml_lines.Mapping) -> None:
    key = check_pod(pod)
    _keep(manifest.pods, key, pod, "Pod {}/{}".format(*key))


def check_pod(pod: yaml_lines.Mapping) -> PodKey:
    """Check a Pod object, and complete it with its namespace and a UID. Raises `YamlError`."""
    metadata = _read_namespaced(pod)
    _check_text(metadata, "uid")
    _check_text(_read_mapping(pod, "status"), "phase")
    spec = _read_mapping(pod, "spec")
    for listed in ("initContainers", "containers"):
        for container in _read_list(spec, listed):
            _check_container(container, spec.get_line(listed))
    key = (metadata["namespace"], metadata["name"])
    # Derived, so that reading the file again does not make it another pod.
    metadata.setdefault("uid", derive_uid(*key))
    return key


def _take_quota(manifest: Manifest, quota: yaml_lines.Mapping) -> None:
    metadata = _read_namespaced(quota)
    _check_quantities(_read_mapping(quota, "spec"), "hard")
    key = (metadata["namespace"], metadata["name"])
    _keep(manifest.quotas, key, quota, "ResourceQuota {}/{}".format(*key))


_KINDS: Final[Mapping[str, Callable[[Manifest, yaml_lines.Mapping], None]]] = {
    "Node": _take_node,
    "Pod": _take_pod,
    "ResourceQuota": _take_quota,
}


def derive_uid(namespace: str, name: str) -> str:
    """Derive the UID of a pod that was described without one; it is the same each time."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"pod:{namespace}/{name}"))


def _keep(objects: dict[Any, Json], key: Any, entity: yaml_lines.Mapping, called: str) -> None:
    first = objects.get(key)
    if isinstance(first, yaml_lines.Mapping):
        raise YamlError(entity.line, f"{called} is defined here again, first in line {first.line}; keep one of them")
    objects[key] = entity


def _read_namespaced(entity: yaml_lines.Mapping) -> yaml_lines.Mapping:
    metadata = _read_metadata(entity)
    _check_text(metadata, "namespace")
    if not metadata.get("namespace"):
        # As kubectl does with an object that names none.
        metadata["namespace"] = "default"
    return metadata


def _read_metadata(entity: yaml_lines.Mapping) -> yaml_lines.Mapping:
    metadata = _read_mapping(entity, "metadata")
    if not metadata.get("name"):
        raise YamlError(metadata.line, f"the {entity['kind']} has no metadata.name, write name: under metadata")
    _check_text(metadata, "name")
    for field_name in ("annotations", "labels"):
        entries = _read_mapping(metadata, field_name)
        for key in entries:
            # Kubernetes takes strings only, while YAML makes `1` a number and `yes` a boolean.
            _check_text(entries, key, f"metadata.{field_name}: {key}")
    return metadata


def _check_container(container: Any, line: int) -> None:
    if not isinstance(container, yaml_lines.Mapping):
        raise YamlError(line, f"a container is {_describe_kind(container)}, write a mapping with name and resources")
    if not container.get("name"):
        raise YamlError(container.line, "the container has no name, write name:")
    _check_text(container, "name")
    resources = _read_mapping(container, "resources")
    _check_quantities(resources, "limits")
    _check_quantities(resources, "requests")


def _check_quantities(parent: yaml_lines.Mapping, key: str) -> None:
    amounts = _read_mapping(parent, key)
    for name, amount in amounts.items():
        # YAML's true is an int in Python, and no quantity.
        if not isinstance(amount, _SCALARS) or isinstance(amount, bool):
            raise YamlError(
                amounts.get_line(name), f'{key}: {name} is {_describe_kind(amount)}, write a quantity such as "1"'
            )


def _read_mapping(parent: yaml_lines.Mapping, key: str) -> yaml_lines.Mapping:
    """Read the mapping under `key`; an empty one where it is absent or null."""
    value = parent.get(key)
    if value is None:
        return yaml_lines.Mapping(parent.get_line(key))
    if not isinstance(value, yaml_lines.Mapping):
        raise YamlError(parent.get_line(key), f"{key} is {_describe_kind(value)}, write a mapping")
    return value


def _read_list(parent: yaml_lines.Mapping, key: str) -> list[Any]:
    value = parent.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise YamlError(parent.get_line(key), f"{key} is {_describe_kind(value)}, write a list")
    return value


def _check_text(parent: yaml_lines.Mapping, key: str, called: str = "") -> None:
    value = parent.get(key)
    if key in parent and not isinstance(value, str):
        hint = f'"{value}"' if isinstance(value, (int, float)) else "text in quotes"
        raise YamlError(parent.get_line(key), f"{called or key} is {_describe_kind(value)}, write a string: {hint}")


def _describe_kind(value: Any) -> str:
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return f"the boolean {str(value).lower()}"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    names = {str: f"the text {value!r:.40}", list: "a list", dict: "a mapping"}
    return next((name for kind, name in names.items() if isinstance(value, kind)), type(value).__name__)
