"""Request of one container of each device, in the form that the checks use."""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.fit.judge.request.pod_annotations import PodAnnotations
from engine.fit.judge.request.pod_request import VendorRequest
from engine.hami.quantities import UNSET_PERCENT
from engine.hami.vendors import Family

_WHOLE_DEVICE = 100

Amount = TypeVar("Amount", int, NDArray[np.int64])


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """Request of one container under the pod's device policy.

    count: devices. memory_mib: MiB of each device; where 0, memory_percentage of the device's own total counts. cores:
    percent of each device, at most 100; scored_cores: as requested. is_mutex: only devices that no pod uses. numa_bind:
    all devices on one NUMA node. collects_all: topology-aware, every device that fits is collected before some of them
    are taken.
    """

    count: int
    memory_mib: int
    memory_percentage: int
    cores: int
    is_mutex: bool
    numa_bind: bool
    collects_all: bool
    scored_cores: int = 0

    def resolve_scored_memory(self, total: NDArray[np.int64]) -> NDArray[np.int64]:
        """Resolve the MiB by which HAMi sorts the devices that are named like their vendor."""
        if self.memory_percentage in (0, UNSET_PERCENT):
            return total * 0 + self.memory_mib
        # An Enflame request by memory or cores has -1 percent.
        return compute_percent(total, self.memory_percentage)

    def resolve_memory(self, total: Amount) -> Amount:
        """Resolve the MiB requested of a device, or of each device of an array, that has `total` MiB."""
        if self.memory_mib > 0 or self.memory_percentage == UNSET_PERCENT:
            return total * 0 + self.memory_mib  # in the shape of `total`
        # HAMi multiplies in 32 bits (docs/hami-differences.md).
        return compute_percent(total, self.memory_percentage)

    @property
    def wants_whole_device(self) -> bool:
        return self.cores == _WHOLE_DEVICE


def compute_percent(total: Amount, percent: int) -> Amount:
    """Compute a percentage rounded towards zero, as Go divides: a device may register a negative amount."""
    product = total * percent
    return abs(product) // 100 * (1 - 2 * (product < 0))


def build_device_request(request: VendorRequest, annotations: PodAnnotations, family: Family) -> DeviceRequest:
    policies = split_policy(annotations.device_policy)
    collects_all = "topology-aware" in policies and family in (Family.NVIDIA, Family.CUSTOM)
    return DeviceRequest(
        request.count,
        request.memory_mib,
        request.memory_percentage,
        # HAMi's `Fit` takes more than 100 as 100.
        request.cores if family is Family.METAX_SGPU else min(request.cores, _WHOLE_DEVICE),
        is_mutex="mutex" in policies,
        numa_bind=annotations.numa_bind,
        collects_all=collects_all,
        scored_cores=request.cores,
    )


def split_policy(policy: str) -> tuple[str, ...]:
    """Split a device policy into its words; it may be a comma chain ("numa,binpack")."""
    return tuple(word for part in policy.split(",") if (word := part.strip()))
