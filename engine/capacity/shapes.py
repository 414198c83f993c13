"""The pod of a question about capacity: of amounts of devices, as a person names them, or of a file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine.fit.manifests import ManifestError
from engine.hami.annotations import USE_TYPE
from engine.hami.vendors import Vendors
from engine.simulation.workloads import PodTemplate, read_workloads
from schemas.json_types import Json

NAME: Final = "shape"


@dataclass(frozen=True, slots=True)
class Shape:
    """Amounts of one pod with one container. 0: not requested. model: part of a model's name; empty for any."""

    devices: int
    memory_mib: int = 0
    cores_percent: int = 0
    model: str = ""


def build_pod(shape: Shape, vendors: Vendors, namespace: str = "default") -> Json:
    """Build the pod of a shape, with the resource names of the first vendor of the device table."""
    names = vendors[0].resources
    amounts = {names.count: shape.devices, names.memory: shape.memory_mib, names.cores: shape.cores_percent}
    limits = {name: str(amount) for name, amount in amounts.items() if name and amount}
    annotations = {USE_TYPE: shape.model} if shape.model else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": namespace, "name": NAME, "uid": NAME, "annotations": annotations},
        "spec": {"containers": [{"name": NAME, "resources": {"limits": limits}}]},
    }


def build_template(shape: Shape, vendors: Vendors, namespace: str = "default") -> PodTemplate:
    """Build the template whose copies are pods of a shape."""
    return PodTemplate("Pod", NAME, build_pod(shape, vendors, namespace), 1, {})


def read_template(text: bytes, path: Path, namespace: str = "default") -> PodTemplate:
    """Read the one workload of a file. Raises `ManifestError`."""
    workloads = read_workloads(text, path, namespace)
    if len(workloads) > 1:
        raise ManifestError(
            path, None, f"describes {len(workloads)} workloads, ask about one; `simulate` takes several"
        )
    return workloads[0]
