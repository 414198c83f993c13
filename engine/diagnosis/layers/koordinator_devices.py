"""Koordinator's objects Device: of each node its devices, which of them are sick, and who holds them.

A scheduler's count says only that devices are too few; these objects say why. Pods of other namespaces are counted.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.layers.statements import find_refusal
from engine.diagnosis.outcome import FoundObstacle, Word
from engine.diagnosis.wording import shorten_list
from runtime.kubernetes.object_fields import Fields, get_text, iterate_objects

DEVICE: Final = "Device.scheduling.koordinator.sh"
OBSTACLE: Final = "DeviceShareShort"
_GPU: Final = "gpu"


class _Holding(NamedTuple):
    """Devices of a node that a pod holds a part of."""

    pod: str
    minors: frozenset[int]


def add_devices(obstacle: FoundObstacle, facts: DiagnosisFacts) -> FoundObstacle:
    """Add what the objects say about the GPUs of the cluster to the plugin's count of nodes."""
    refusal = find_refusal(facts)
    is_of_gpus = refusal is not None and _GPU in refusal.text.lower()
    nodes = facts.objects.select(DEVICE) if facts.objects and is_of_gpus else []
    devices = [(node, device) for node in nodes for device in _list_of_type(node, "spec", "devices")]
    if obstacle.code != OBSTACLE or not devices:
        return obstacle
    sick = [device for _, device in devices if device.get("health") is False]
    free = [device for node, device in devices if device.get("health") is not False and not _is_held(node, device)]
    holders = {entry.pod for node in nodes for entry in _iterate_holdings(node) if _is_of(entry.pod, facts.namespace)}
    words: dict[str, Word] = {
        "gpus": len(devices), "on_nodes": len(nodes), "sick": len(sick), "untouched": len(free),
        "holders": shorten_list(sorted(holders)),
    }  # fmt: skip
    clauses = ["devices", *(["sick"] if sick else []), *(["holders"] if holders else [])]
    return obstacle._replace(words={**obstacle.words, **words}, clauses=[*obstacle.clauses, *clauses])


def _list_of_type(node: Fields, *path: str) -> list[Fields]:
    return [entry for entry in iterate_objects(node, *path) if get_text(entry, "type") == _GPU]


def _iterate_holdings(node: Fields) -> Iterator[_Holding]:
    for allocation in _list_of_type(node, "status", "allocations"):
        for entry in iterate_objects(allocation, "entries"):
            minors = entry.get("minors")
            pod = f"{get_text(entry, 'namespace')}/{get_text(entry, 'name')}"
            yield _Holding(pod, frozenset(minors if isinstance(minors, list) else ()))


def _is_held(node: Fields, device: Fields) -> bool:
    return any(device.get("minor") in entry.minors for entry in _iterate_holdings(node))


def _is_of(pod: str, namespace: str) -> bool:
    return pod.partition("/")[0] == namespace
