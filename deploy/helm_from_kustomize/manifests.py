"""The manifests of deploy/kustomize, and the part of kustomize that they use: JSON patches and deletions by target.

What these files begin to use and this module does not know is an error here, not a difference of the chart.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import jsonpatch
import yaml

KUSTOMIZE: Final = Path(__file__).parents[1] / "kustomize"


@dataclass(frozen=True, slots=True)
class Patch:
    """``operations`` is empty where the patch deletes the object."""

    target: dict[str, str]
    operations: tuple[dict[str, Any], ...]

    def has_target(self, item: dict[str, Any]) -> bool:
        """Tell whether the object is one of the patch's targets."""
        metadata = item["metadata"]
        return all(_TESTS[key](wanted, item, metadata) for key, wanted in self.target.items())

    def apply(self, item: dict[str, Any]) -> dict[str, Any]:
        """Apply the operations to a copy of the object."""
        patched: dict[str, Any] = jsonpatch.apply_patch(item, self.operations)
        return patched


def read_objects(folder: str) -> list[dict[str, Any]]:
    """Read the objects of the files that a kustomization lists, as its own pods' component completes them."""
    path = KUSTOMIZE / folder
    names = [name for name in _read_kustomization(folder).get("resources", ()) if name.endswith(".yaml")]
    texts = ((path / name).read_text("utf-8") for name in names)
    items = [item for text in texts for item in yaml.load_all(text, yaml.CSafeLoader) if item]
    return [apply_all(item, read_patches("components/pods")) for item in items]


@cache
def read_patches(folder: str) -> tuple[Patch, ...]:
    """Read the patches of a kustomization, but for strategic merges other than deletions."""
    return tuple(_parse(patch) for patch in _read_kustomization(folder).get("patches", ()))


def apply_all(item: dict[str, Any], patches: tuple[Patch, ...]) -> dict[str, Any]:
    """Apply the patches whose target the object is."""
    for patch in patches:
        if patch.has_target(item):
            item = patch.apply(item)
    return item


@cache
def _read_kustomization(folder: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.load((KUSTOMIZE / folder / "kustomization.yaml").read_bytes(), yaml.CSafeLoader)
    return document


def _parse(patch: dict[str, Any]) -> Patch:
    content = yaml.load(patch["patch"], yaml.CSafeLoader)
    if isinstance(content, dict):
        if content.get("$patch") != "delete":
            raise ValueError(f"deletions are the only strategic merges known here: {patch}")
        content = []
    return Patch(patch["target"], tuple(content))


def _matches_labels(selector: str, labels: dict[str, str]) -> bool:
    if match := re.fullmatch(r"!(\S+)", selector):
        return match[1] not in labels
    if match := re.fullmatch(r"(\S+) in \(([^)]*)\)", selector):
        return labels.get(match[1]) in match[2].split(",")
    key, equals, value = selector.partition("=")
    if not equals:
        raise ValueError(f"a selector that is not known here: {selector}")
    return labels.get(key) == value


_TESTS: Final[Mapping[str, Callable[[str, dict[str, Any], dict[str, Any]], object]]] = {
    "kind": lambda wanted, item, _: re.fullmatch(wanted, item["kind"]),
    "name": lambda wanted, _, metadata: re.fullmatch(wanted, metadata["name"]),
    "labelSelector": lambda wanted, _, metadata: _matches_labels(wanted, metadata.get("labels") or {}),
    "annotationSelector": lambda wanted, _, metadata: _matches_labels(wanted, metadata.get("annotations") or {}),
}
