"""Simulation of pods on a live cluster by this process: the answer of the API's ``POST /api/v1/simulate``."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cli.client.problems import NotAllowed, Problem, WrongRequest
from engine.cases.judging import build_manifest
from engine.fit import device_config
from engine.fit.manifests import ManifestError
from engine.simulation.cluster import build_cluster
from engine.simulation.hami_release import LATEST, observe_release
from engine.simulation.setting import SimulationSetting
from engine.simulation.simulate import simulate_workloads
from engine.simulation.verdict import PodRejectedError
from engine.simulation.workloads import read_workloads
from engine.snapshot import kinds
from engine.snapshot.case_objects import CaseObjects
from schemas.json_types import Json

_PODS: Final = Path("the pods")


def simulate_on_cluster(objects: CaseObjects, pods: bytes, namespace: str, count: int | None) -> Json | Problem:
    """Simulate the pods of a text on the objects that were read; ``count``: copies of each, None for one."""
    if not objects.has_read(kinds.NODE):
        return NotAllowed("the nodes can't be read", "`kubectl auth can-i list nodes`; or give --cluster FILE.")
    manifest = build_manifest(objects)
    release = observe_release(manifest.pods.values()) or LATEST
    cluster = build_cluster(manifest, device_config.read_shipped(), release)
    try:
        workloads = read_workloads(pods, _PODS, namespace)
        return simulate_workloads(cluster, workloads, count, SimulationSetting(datetime.now(UTC)))
    except (ManifestError, PodRejectedError) as error:
        return WrongRequest(str(error))
