"""Nodes with devices: the resources that an extender has to manage for them, and nodes that two schedulers use. Pure.

A vendor's resources are named as HAMi's device configuration in the cluster has them, by default as HAMi's chart does.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cli.doctor.findings import Fault
from engine.fit.device_config import DeviceConfigError, parse, read_shipped
from engine.hami.handshake import count_allocatable
from engine.hami.node_registration import read_node
from engine.hami.vendors import NVIDIA, Vendor, Vendors
from engine.simulation.own_schedulers import EQUALITY, SELECTOR, is_met, read_setting
from schemas.json_types import JsonView

DEVICE_CONFIGURATION: Final = "device-config.yaml"
"""Key of HAMi's device configuration in the ConfigMap of its chart."""
_NAMED: Final = 3
"""Nodes that a finding names."""


@dataclass(frozen=True, slots=True)
class VendorNodes:
    """Vendor of which nodes have devices."""

    word: str
    resources: Sequence[str]
    """Resources that kube-scheduler has to leave to the extender."""
    nodes: Sequence[str]


def read_vendors(config_maps: Iterable[JsonView]) -> Vendors:
    """Read the first device configuration that can be read, by default that of HAMi's chart."""
    for config_map in config_maps:
        if text := (config_map.get("data") or {}).get(DEVICE_CONFIGURATION):
            try:
                return parse(text.encode(), DEVICE_CONFIGURATION)
            except DeviceConfigError:
                continue
    return read_shipped()


def list_vendors_of_nodes(nodes: Sequence[JsonView], vendors: Vendors) -> list[VendorNodes]:
    """List the vendors whose devices nodes register, and NVIDIA, which HAMi's chart always has."""
    by_word: dict[str, list[JsonView]] = {NVIDIA.word: []}
    for node in nodes:
        for vendor in _list_registered(node, vendors):
            by_word.setdefault(vendor.word, []).append(node)
    return [
        VendorNodes(
            vendor.word, _list_unknown_to_nodes(vendor, by_word[vendor.word]), _list_names(by_word[vendor.word])
        )
        for vendor in vendors
        if vendor.word in by_word
    ]


def _list_registered(node: JsonView, vendors: Vendors) -> list[Vendor]:
    reading = read_node(node, vendors)
    nvidia = [vendor for vendor in vendors if vendor.word == NVIDIA.word and reading.nvidia is not None]
    return [*nvidia, *(vendors[code - 1] for code in reading.others)]


def _list_unknown_to_nodes(vendor: Vendor, nodes: Sequence[JsonView]) -> list[str]:
    """List the resources of which kube-scheduler would find none on the nodes, and the count, without which it does not
    ask the extender."""
    names = vendor.resources.names
    is_known = {name: any(count_allocatable(node, name) > 0 for node in nodes) for name in names}
    return [name for name in names if name == vendor.resources.count or not is_known[name]]


def _list_names(objects: Iterable[JsonView]) -> list[str]:
    return [str(item["metadata"]["name"]) for item in objects]


def name_nodes(names: Sequence[str]) -> str:
    """Name the first of the nodes, and count the others."""
    others = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {others} more" if others > 0 else "")


def read_selector(workload: JsonView, container_name: str, settings: Mapping[str, Mapping[str, str]]) -> str:
    """Read the labels of the nodes that a scheduler uses; empty for every node. ``settings``: data of ConfigMaps."""
    containers = workload["spec"]["template"]["spec"]["containers"]
    named = (container for container in containers if container["name"] == container_name)
    return next((read_setting(container, SELECTOR, settings) for container in named), "")


def check_shared_nodes(
    nodes: Sequence[JsonView], vendors: Vendors, ours: Mapping[str, str], theirs: Mapping[str, str]
) -> Iterator[Fault]:
    """Check for nodes with devices that our scheduler and HAMi's both use. ``ours``, ``theirs``: by scheduler, the
    labels of its nodes."""
    with_devices = [node for node in nodes if _list_registered(node, vendors)]
    for name, labels in ours.items():
        for other, other_labels in theirs.items():
            shared = [node for node in with_devices if _selects(labels, node) and _selects(other_labels, node)]
            if not shared:
                continue
            names = name_nodes(_list_names(shared))
            problem = f"{other} decides on its nodes too ({names}): a device could be given away twice"
            keep_off = "Keep HAMi off them: scheduler.nodeLabelSelector of its chart"
            remedy = keep_off if labels else f"Give ours nodes of its own by {SELECTOR[0]}. {keep_off}"
            yield Fault("hami", name, problem, f"{remedy} (docs/switching-from-hami.md, Side by side).")


def _selects(selector: str, node: JsonView) -> bool:
    """Tell whether the node certainly has the labels; of a selector with sets of values nothing is certain."""
    labels = node["metadata"].get("labels") or {}
    for part in filter(None, selector.split(",")):
        form = EQUALITY.fullmatch(part)
        if not form or not is_met(form, labels):
            return False
    return True
