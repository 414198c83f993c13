"""Random pods begin and end on two nodes of each vendor: no device ever gives more than it has.

What pods hold is added up here from the annotations that device plugins read, not from the scheduler's reservations.
"""

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import pytest

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.judge.decide import decide
from engine.fit.judge.decision import Decision, SchedulingPolicy
from engine.hami.registration import Device
from engine.hami.vendors import Family, Vendor
from tests.support.builders.vendor_examples import NAMES, VENDORS, read_node, read_pod
from tests.support.stress import IS_STRESS

PODS: Final = 10_000 if IS_STRESS else 50
"""Per vendor."""
POLICIES: Final = ("binpack", "spread")


class Share(NamedTuple):
    """Share of a device that a container holds. cores: percent, and for AWS Neuron a bit for each core."""

    memory_mib: int
    cores: int


def draw_limits(name: str, chance: random.Random) -> dict[str, Any]:
    """Draw the amounts of the example's pod, each changed at random: down to nothing, up to more than there is."""
    limits = read_pod(name)["spec"]["containers"][-1]["resources"]["limits"]
    return {key: max(0, round(int(value) * chance.choice((0, 0.3, 1, 1, 1, 2, 3, 7)))) for key, value in limits.items()}


def iterate_shares(decision_annotations: Mapping[str, str]) -> Iterator[tuple[str, Share]]:
    """Iterate over the shares of the annotations: ``uuid,vendor,memory,cores:`` of each container, ended by ``;``."""
    for vendor in VENDORS:
        text = decision_annotations.get(vendor.pod.allocated, "")
        for part in text.replace(";", ":").split(":"):
            if part:
                uuid, _, memory, cores = part.split(",")
                yield uuid, Share(int(memory), int(cores))


def describe_overbooking(vendor: Vendor, device: Device, held: list[Share]) -> str:
    if len(held) > device.slots:
        return f"{len(held)} containers on {device.slots} slots"
    memory_mib = sum(share.memory_mib for share in held)
    # HAMi gives an Enflame device's parts by profile, and counts Kunlun's by their places on the device.
    if memory_mib > device.memory_mib and vendor.family is not Family.ENFLAME:
        return f"{memory_mib} MiB of {device.memory_mib}"
    if vendor.family is Family.NEURON:
        bits = [share.cores for share in held]
        return "" if sum(bits) == 0 or sum(bits).bit_count() == sum(bit.bit_count() for bit in bits) else f"{bits}"
    cores = sum(share.cores for share in held)
    return f"{cores} % of {device.cores} %" if cores > device.cores and vendor.family is not Family.ENFLAME else ""


@pytest.mark.stress
@pytest.mark.parametrize("name", NAMES)
def test_no_device_is_overbooked(name: str) -> None:
    chance = random.Random(name)
    columns = ClusterColumns(VENDORS)
    devices: dict[str, tuple[Vendor, Device]] = {}
    for node in ("a", "b"):
        columns.apply_node(read_node(name, node))
        registration = columns.get_registration(node)
        assert registration
        for device in registration.devices:
            owner = next(vendor for vendor in VENDORS if vendor.matches(device.model, vendor.word))
            # The examples' nodes name their devices alike where an annotation lists them.
            devices[f"{node} {device.uuid}"] = (owner, device)
    held: dict[str, dict[str, list[Share]]] = {}
    placed = 0
    for number in range(PODS):
        pod = read_pod(name, f"uid-{number}", draw_limits(name, chance))
        pod["metadata"]["name"] = f"pod-{number}"
        pod["metadata"]["annotations"] = {"hami.io/gpu-scheduler-policy": chance.choice(POLICIES)}
        decision = decide(columns, pod, ["a", "b"], SchedulingPolicy(chance.choice(POLICIES), "spread"))
        if isinstance(decision, Decision) and decision.chosen is not None:
            taken: dict[str, list[Share]] = defaultdict(list)
            for uuid, share in iterate_shares(decision.annotations):
                taken[f"{decision.chosen} {uuid}"].append(share)
            held[f"uid-{number}"] = dict(taken)
            placed += bool(taken)
            pod["metadata"]["annotations"] = decision.annotations
            columns.apply_pod(pod)
        for device_name, (vendor, device) in devices.items():
            of_device = [share for pod_shares in held.values() for share in pod_shares.get(device_name, ())]
            assert describe_overbooking(vendor, device, of_device) == "", (number, device_name)
        if held and chance.random() < 0.4:
            deleted = chance.choice(list(held))
            del held[deleted]
            columns.delete_pod(deleted)
    assert placed > PODS / 20
