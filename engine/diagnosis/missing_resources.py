"""Resources that a scheduler counted and that no node offers, as far as the nodes were read; waiting adds none."""

import re
from collections.abc import Mapping
from typing import Any, Final

from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.outcome import FoundObstacle, Word
from engine.diagnosis.refused_nodes import RefusedNodes
from engine.diagnosis.texts import write_phrase
from engine.diagnosis.wording import join_phrases, shorten_list
from engine.hami.quantities import parse_whole
from runtime.kubernetes.object_fields import get_object, iterate_objects
from schemas.answers.diagnosis import InBothLanguages

MAX_NEAREST: Final = 4
_LABELS: Final = re.compile(
    r"nvidia\.com/(?:gpu\.(?:memory|count|product|family|machine|compute\.(?:major|minor)|replicas|present|mode|"
    r"sharing-strategy)|cuda\..+|gfd\.timestamp|mig\.(?:capable|strategy|config(?:\.state)?)|vgpu\.present|mps\.capable)"
)
"""Labels of nodes that NVIDIA's GPU feature discovery and MIG manager write (k8s-device-plugin, docs of GFD)."""
_SHARE: Final = re.compile(r"-(?:memory|core|cores)$")
"""End of the name of a share, before which the name of its device stands (Ascend, Iluvatar, Kunlun)."""


def is_label(resource: str) -> bool:
    """Tell whether the name of a resource is that of a label of nodes with NVIDIA's GPUs."""
    return _LABELS.fullmatch(resource) is not None


def describe_missing_resource(group: RefusedNodes, facts: DiagnosisFacts, total: int) -> FoundObstacle | None:
    """Describe a resource that none of the scheduler's nodes offers; None if one does, or if nodes were not read."""
    resource = group.details[0] if group.details else ""
    nodes = {state.name: get_object(state.node, "status", "allocatable") for state in facts.nodes or () if state.node}
    if "/" not in resource or group.count < total or not (len(nodes) >= total and all(nodes.values())):
        return None
    if any(_count(amounts, resource) for amounts in nodes.values()):
        return None
    announcing = [name for name, amounts in nodes.items() if resource in amounts]
    nearest = _list_nearest(resource, nodes)
    words: dict[str, Word] = {
        "resource": resource,
        "asked": _count_requested(facts, resource),
        "nearest": join_phrases(nearest),
        "announcing": shorten_list(announcing),
    }
    clauses = [*(["nearest"] if nearest else []), *(["announcing"] if announcing else [])]
    return FoundObstacle("ResourceNotOffered", words, {"nodes": group.count}, tuple(nodes), group.count, (), clauses)


def add_offered(obstacle: FoundObstacle, facts: DiagnosisFacts) -> FoundObstacle:
    """Add what the nodes offer of a share's vendor, if they offer no device of the share's kind."""
    nodes = {state.name: get_object(state.node, "status", "allocatable") for state in facts.nodes or () if state.node}
    resource = str(getattr(obstacle.words["resource"], "en", obstacle.words["resource"]))
    device = _SHARE.sub("", resource)
    offered = _list_nearest(resource, nodes)
    if device == resource or not offered or any(_count(amounts, device) for amounts in nodes.values()):
        return obstacle
    words = {**obstacle.words, "offered": join_phrases(offered)}
    return obstacle._replace(words=words, clauses=[*obstacle.clauses, "offered"])


def _count(amounts: Mapping[str, Any], resource: str) -> int:
    return parse_whole(str(amounts.get(resource, "0"))) or 0


def _list_nearest(resource: str, nodes: Mapping[str, Mapping[str, Any]]) -> list[InBothLanguages]:
    """List the resources of the same vendor that nodes offer."""
    domain = resource.partition("/")[0]
    offered: dict[str, list[int]] = {}
    for amounts in nodes.values():
        for name in amounts:
            if name.partition("/")[0] == domain and (count := _count(amounts, name)):
                offered.setdefault(name, []).append(count)
    return [
        write_phrase("offered_on", subject=name, amount=sum(counts), n=len(counts))
        for name, counts in sorted(offered.items())[:MAX_NEAREST]
    ]


def _count_requested(facts: DiagnosisFacts, resource: str) -> int:
    """Count what the pod's containers request of a resource; one where no object of the pod says it."""
    spec = facts.pod.spec if facts.pod else {}
    counts = [
        _count(
            {**get_object(container, "resources", "limits"), **get_object(container, "resources", "requests")}, resource
        )
        for container in iterate_objects(spec, "containers")
    ]
    return sum(counts) or 1
