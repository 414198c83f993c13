"""Commands and manifests to copy that carry a suggested change out: nothing of it is executed here.

Most of a pod can't be changed once it exists: what its owner's template takes is patched there, and the rest is written
as a part of the manifest.
"""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import yaml

Edit = Mapping[str, Any]
_PATCHED: Final = ("Deployment", "StatefulSet", "DaemonSet", "CronJob")
"""Kinds whose template can be changed; others have to be created again."""
_AMOUNTS: Final = ("memory", "cores", "count", "request")
_ANNOTATIONS: Final = ("type", "uuid", "mode", "numa", "policy")
_QUANTITY: Final = re.compile(r"(\d+(?:\.\d+)?)(m| ?[KMGT]iB)?")
_AFFINITY: Final = "nodeAffinity"
_OF_POD: Final = "spec.resources"
_TAINT: Final = re.compile(r"([^=:]+)(?:=([^:]*))?:(\w+)")


class ChangePatch(NamedTuple):
    text: str
    """Commands, a line each, or a part of the manifest."""
    note: str
    """Key of the text about it: ``patch`` for a template that is changed, ``again`` for a manifest, empty for none."""
    owner: str
    """Workload whose template is meant, such as ``Job/train``; empty for the pod itself."""


def write_patch(edits: Sequence[Edit], namespace: str, pod: str, owner: str) -> ChangePatch | None:
    """Write what carries all edits out; None where no command or manifest does.

    ``owner``: workload of the pod, such as ``Deployment/web``; empty for a pod of its own.
    """
    if lines := _write_node_commands(edits):
        return ChangePatch("\n".join(lines), "", "")
    kind, _, name = owner.partition("/")
    target = f"{kind.lower()}/{name}" if kind in _PATCHED else ""
    if not owner and all(edit["constraint"] in _ANNOTATIONS for edit in edits):
        keys = " ".join(shlex.quote(f"{edit['where']}-") for edit in edits)
        return ChangePatch(f"kubectl -n {shlex.quote(namespace)} annotate pod {shlex.quote(pod)} {keys}", "", "")
    if target and all(edit["constraint"] in _AMOUNTS for edit in edits):
        lines = [_set_resources(namespace, target, edit) for edit in edits]
        return ChangePatch("\n".join(lines), "patch", owner) if all(lines) else None
    template = _build_template(edits)
    if template is None:
        return None
    if target and "tolerations" not in template.get("spec", {}):
        document = {"spec": {"template": template}}
        if kind == "CronJob":
            document = {"spec": {"jobTemplate": document}}
        written = shlex.quote(json.dumps(document, separators=(",", ":"), ensure_ascii=False))
        return ChangePatch(f"kubectl -n {shlex.quote(namespace)} patch {target} -p {written}", "patch", owner)
    return ChangePatch(yaml.safe_dump(template, sort_keys=False, width=1000).rstrip(), "again", owner)


def _write_node_commands(edits: Sequence[Edit]) -> list[str]:
    commands = {"uncordon": "kubectl uncordon {}", "lock": "kubectl annotate node {} hami.io/mutex.lock-"}
    lines = [commands.get(edit["constraint"], "").format(shlex.quote(edit["where"])) for edit in edits]
    return lines if all(lines) else []


def _to_quantity(text: str) -> str:
    """Convert an amount as people read it into a quantity; empty for one of another form."""
    match = _QUANTITY.fullmatch(text.replace(",", ""))
    return f"{match[1]}{(match[2] or '').strip().removesuffix('B')}" if match else ""


def _set_resources(namespace: str, target: str, edit: Edit) -> str:
    container, _, resource = edit["where"].partition(": ")
    amount = _to_quantity(edit["after"])
    if not amount or container == _OF_POD:
        return ""
    # Both: of an extended resource they must be equal, and a manifest may have either.
    pair = shlex.quote(f"{resource}={amount}")
    return (
        f"kubectl -n {shlex.quote(namespace)} set resources {target} -c {shlex.quote(container)} "
        f"--limits={pair} --requests={pair}"
    )


def _build_template(edits: Sequence[Edit]) -> dict[str, Any] | None:
    """Build the part of a pod's template that changes; None for changes of anything else."""
    annotations: dict[str, None] = {}
    containers: dict[str, dict[str, str]] = {}
    selector: dict[str, str | None] = {}
    spec: dict[str, Any] = {}
    for edit in edits:
        constraint, where = edit["constraint"], edit["where"]
        if constraint in _ANNOTATIONS:
            annotations[where] = None
        elif constraint in _AMOUNTS and (amount := _to_quantity(edit["after"])):
            container, _, resource = where.partition(": ")
            containers.setdefault(container, {})[resource] = amount
        elif constraint == "selector" and where != _AFFINITY:
            selector[where] = edit["after"].partition("=")[2] or None
        elif constraint == "taint" and (taint := _TAINT.fullmatch(edit["after"])):
            spec.setdefault("tolerations", []).append(_build_toleration(*taint.groups()))
        else:
            return None
    if selector:
        spec["nodeSelector"] = selector
    if of_pod := containers.pop(_OF_POD, None):
        spec["resources"] = {"limits": of_pod}
    if containers:
        spec["containers"] = [{"name": name, "resources": {"limits": limits}} for name, limits in containers.items()]
    return ({"metadata": {"annotations": annotations}} if annotations else {}) | ({"spec": spec} if spec else {})


def _build_toleration(key: str, value: str | None, effect: str) -> dict[str, str]:
    named = {"operator": "Equal", "value": value} if value else {"operator": "Exists"}
    return {"key": key} | named | {"effect": effect}
