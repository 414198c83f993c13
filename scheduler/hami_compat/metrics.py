"""HAMi's metrics of devices, containers and quotas, under HAMi's names: its dashboards and alerts work as they are.

Names, labels, units and values are those of HAMi v2.10.0 (`cmd/scheduler/metrics.go`), also where ours would differ:
each device has series of its own, and a ratio of cores is in percent.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Final

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.devices.pod_usage import PodUse

MIB: Final = 2**20
PERCENT: Final = 100

_DEVICE: Final = ("node", "device_uuid", "device_index", "device_type")
_CORES: Final = ("node", "device_uuid", "device_index", "device_cores", "device_type")
_OVERVIEW: Final = ("node", "device_uuid", "device_index", "device_cores", "device_memory_limit", "device_type")
_CONTAINER: Final = ("namespace", "node", "pod", "container_index", "device_uuid")
_QUOTA: Final = ("namespace", "quota_name")

FAMILIES: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "hami_gpu_memory_limit_bytes": ("Memory of a device.", _DEVICE),
    "hami_gpu_core_limit_ratio": ("Compute of a device, in percent of one.", _DEVICE),
    "hami_gpu_memory_allocated_bytes": ("Memory of a device that pods hold.", _CORES),
    "hami_gpu_shared_count": ("Containers that share a device.", _DEVICE),
    "hami_gpu_core_allocated_ratio": ("Compute of a device that pods hold, in percent of one.", _DEVICE),
    "hami_node_gpu_overview": ("Memory of a device that pods hold; labels say what it has.", _OVERVIEW),
    "hami_node_gpu_memory_allocated_ratio": ("Part of a device's memory that pods hold, 0 to 1.", _DEVICE),
    "hami_vgpu_memory_allocated_bytes": ("Memory of a device that a container was given.", _CONTAINER),
    "hami_vgpu_core_allocated_ratio": ("Compute of a device that a container was given, in percent.", _CONTAINER),
    "hami_resource_quota_used": ("What a namespace's pods hold of a resource.", (*_QUOTA, "limit")),
    "hami_resource_quota_limit": ("The limit of a namespace's ResourceQuota.", _QUOTA),
}
"""Help text and labels of each metric, the zone apart; those of devices first."""


class HamiMetrics:
    """Reads the columns at each scrape.

    Only for the metrics address, where a thread answers: a large cluster's series would keep the event loop from calls.
    """

    def __init__(self, columns: ClusterColumns) -> None:
        self._columns = columns

    def render(self) -> str:
        """Render the metrics in Prometheus' text format, which for gauges is OpenMetrics' format too."""
        lines: dict[str, list[str]] = {name: [] for name in FAMILIES}
        self._add_devices(lines)
        self._add_containers(lines)
        self._add_quotas(lines)
        return "".join(part for name in FAMILIES for part in _render_family(name, lines[name]))

    def _add_devices(self, lines: Mapping[str, list[str]]) -> None:
        # Text is written here and not by prometheus_client, which takes seconds for the series of 40,000 devices.
        (memory_limits, core_limits, memory, shared, cores_held, overview, part_held) = (
            lines[name].append for name in list(FAMILIES)[:7]
        )
        # The event loop may change columns meanwhile: `node_names` is a copy, and a row that is given back in between
        # shows an old value once.
        for name in self._columns.node_names:
            entry = self._columns.get_entry(name)
            if entry is None:
                continue
            used = zip(*(self._columns.devices[column][entry.rows_slice].tolist() for column in _USED), strict=True)
            for device, (memory_mib, cores, slots) in zip(entry.devices.registration.devices, used, strict=True):
                total, held = _to_core_percent(device.model, device.cores, cores)
                # HAMi puts the zone on every series.
                start = (
                    f'{{zone="vGPU",node="{name}",device_uuid="{_escape(device.uuid)}",device_index="{device.index}"'
                )
                end = f'device_type="{_escape(device.model)}"}}'
                plain = f"{start},{end} "
                memory_limits(f"{plain}{device.memory_mib * MIB}")
                core_limits(f"{plain}{total}")
                memory(f'{start},device_cores="{device.cores}",{end} {memory_mib * MIB}')
                shared(f"{plain}{slots}")
                cores_held(f"{plain}{held}")
                overview(
                    f'{start},device_cores="{device.cores}",device_memory_limit="{device.memory_mib}",{end} '
                    f"{memory_mib * MIB}"
                )
                if device.memory_mib > 0:
                    part_held(f"{plain}{memory_mib / device.memory_mib}")

    def _add_containers(self, lines: Mapping[str, list[str]]) -> None:
        memory, cores = lines["hami_vgpu_memory_allocated_bytes"].append, lines["hami_vgpu_core_allocated_ratio"].append
        for use in self._columns.list_pod_uses():
            for (container, uuid), (memory_mib, held) in _sum_shares(use).items():
                # As HAMi: without a UUID there is no device to show.
                if uuid:
                    labels = (
                        f'{{zone="vGPU",namespace="{_escape(use.namespace)}",node="{_escape(use.node)}",'
                        f'pod="{_escape(use.name)}",container_index="{container}",device_uuid="{_escape(uuid)}"}} '
                    )
                    memory(f"{labels}{memory_mib * MIB}")
                    cores(f"{labels}{self._to_core_percent(use.node, uuid, held)}")

    def _to_core_percent(self, node: str, uuid: str, held: int) -> int:
        entry = self._columns.get_entry(node)
        if entry is None or uuid not in entry.rows:
            return held
        device = entry.devices.registration.devices[entry.rows[uuid][0] - entry.start]
        return _to_core_percent(device.model, device.cores, held)[1]

    def _add_quotas(self, lines: Mapping[str, list[str]]) -> None:
        limits, used = _sum_quotas(self._columns)
        for namespace, resource in sorted({*limits, *used}):
            limit = limits.get((namespace, resource))
            start = f'{{zone="vGPU",namespace="{namespace}",quota_name="{_escape(resource)}"'
            # HAMi writes limit="0" where pods hold something and nothing limits it.
            lines["hami_resource_quota_used"].append(
                f'{start},limit="{limit or 0}"}} {used.get((namespace, resource), 0)}'
            )
            if limit is not None:
                lines["hami_resource_quota_limit"].append(f"{start}}} {limit}")


def _sum_shares(use: PodUse) -> dict[tuple[int, str], tuple[int, int]]:
    """Sum MiB and cores by container, as HAMi counts the containers of a vendor, and device. A container may have
    several shares of a device: two series of the same labels would be refused."""
    sums: dict[tuple[int, str], tuple[int, int]] = {}
    for containers in use.held.values():
        for index, container in enumerate(containers):
            for share in container:
                memory_mib, cores = sums.get((index, share.uuid), (0, 0))
                sums[index, share.uuid] = memory_mib + share.memory_mib, cores + share.cores
    return sums


_USED: Final = ("used_memory", "used_cores", "used_slots")


def _render_family(name: str, lines: list[str]) -> Iterator[str]:
    yield f"# HELP {name} {FAMILIES[name][0]}\n# TYPE {name} gauge\n"
    if lines:
        yield f"{name}" + f"\n{name}".join(lines) + "\n"


def _escape(value: str) -> str:
    """Escape a label's value: a node may register any text as a UUID or a type."""
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _to_core_percent(model: str, total: int, held: int) -> tuple[int, int]:
    """Convert cores as HAMi shows them: AMD's compute units in percent, others as they are registered."""
    if not model.upper().startswith("AMD") or total <= 0:
        return total, held
    return PERCENT, math.ceil(held / total * PERCENT)


_Amounts = dict[tuple[str, str], int]
"""Amounts by namespace and resource."""


def _sum_quotas(columns: ClusterColumns) -> tuple[_Amounts, _Amounts]:
    """Sum the limits, and what pods hold, of the resources that a vendor has."""
    names = {vendor.word: (vendor.resources.memory, vendor.resources.cores) for vendor in columns.vendors}
    resources = {name for pair in names.values() for name in pair if name}
    limits: _Amounts = {}
    for namespace, of_namespace in list(columns.quotas.limits.items()):
        # Of several for one resource the latest counts.
        for quota in list(of_namespace.values()):
            limits |= {(namespace, resource): limit for resource, limit in quota.items() if resource in resources}
    used: _Amounts = {}
    for (namespace, word), amounts in list(columns.quotas.used.items()):
        for resource, amount in zip(names.get(word, ()), amounts, strict=False):
            if resource:
                used[namespace, resource] = used.get((namespace, resource), 0) + amount
    return limits, used
