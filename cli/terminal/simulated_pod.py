"""Simulation of pods in a described cluster by this process: the answer of the API's ``POST /api/v1/simulate``.

Pure but for the device table's file. It imports the fit, which takes its time.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from engine.diagnosis.texts import write_phrase
from engine.fit import device_config, manifests
from engine.fit.manifests import Manifest, ManifestError
from engine.hami.releases import LATEST, HamiRelease, observe_release
from engine.hami.vendors import Vendors
from engine.simulation.cluster import SimulationCluster, build_cluster
from engine.simulation.setting import Note, SimulationSetting
from engine.simulation.simulate import simulate_workloads
from engine.simulation.verdict import PodRejectedError
from engine.simulation.workloads import read_workloads
from runtime.kubernetes.object_fields import get_object, get_text
from schemas.json_types import Json

_TABLE_KEY: Final = "device-config.yaml"


class InputFile(NamedTuple):
    """The bytes of a file, and its name in mistakes."""

    text: bytes
    name: str


class DescribedCluster(NamedTuple):
    """A cluster's files, its device table and its release of HAMi. release: None for the one that the files show."""

    files: Sequence[InputFile]
    name: str
    device_config: Path | None = None
    release: HamiRelease | None = None


class DescribedPods(NamedTuple):
    """The file of the pods, and how many copies of each are placed; None for one."""

    text: bytes
    name: str
    namespace: str = "default"
    copies: int | None = None


def simulate_pods(cluster: DescribedCluster, pods: DescribedPods, now: datetime) -> Json:
    """Simulate the pods of a file. Raises ``ManifestError``, ``DeviceConfigError``."""
    path = Path(pods.name)
    workloads = read_workloads(pods.text, path, pods.namespace)
    simulated, notes = build_described_cluster(cluster)
    if not simulated.node_count:
        problem = "describes 0 nodes, write the output of `kubectl get nodes,pods -A -o yaml`"
        raise ManifestError(Path(cluster.name), None, problem)
    try:
        return simulate_workloads(simulated, workloads, pods.copies, SimulationSetting(now, notes=notes))
    except PodRejectedError as error:
        raise ManifestError(path, None, str(error)) from None


def build_described_cluster(cluster: DescribedCluster) -> tuple[SimulationCluster, tuple[Note, ...]]:
    """Build the cluster of a file, and notes about it. Raises ``ManifestError``, ``DeviceConfigError``."""
    manifest = Manifest()
    for file in cluster.files:
        manifests.parse(file.text, Path(file.name), manifest)
    release = cluster.release or observe_release(manifest.pods.values()) or LATEST
    vendors, notes = _read_table(cluster, manifest, release)
    return build_cluster(manifest, vendors, release), notes


def _read_table(
    cluster: DescribedCluster, manifest: Manifest, release: HamiRelease
) -> tuple[Vendors, tuple[Note, ...]]:
    """Read the device table: the given file, otherwise a ConfigMap of the cluster's file, otherwise HAMi's own."""
    if cluster.device_config:
        return device_config.follow_release(device_config.read(cluster.device_config), release), ()
    for item in manifest.others:
        table = get_object(item, "data").get(_TABLE_KEY)
        if item.get("kind") == "ConfigMap" and isinstance(table, str):
            name = _name_object(item)
            note = Note("DeviceTable", write_phrase("note_table", table=name))
            vendors = device_config.parse(table.encode(), f"{cluster.name}: ConfigMap {name}")
            return device_config.follow_release(vendors, release), (note,)
    return device_config.read_shipped(release), ()


def _name_object(item: Mapping[str, object]) -> str:
    return f"{get_text(item, 'metadata', 'namespace') or 'default'}/{get_text(item, 'metadata', 'name')}"
