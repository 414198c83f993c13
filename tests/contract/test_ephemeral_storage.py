"""Disk of a node: every container says what it takes of it, and no pod is evicted for what it may write."""

from collections.abc import Iterator
from typing import Any, Final

import pytest
import yaml

from deploy.helm_from_kustomize.manifests import KUSTOMIZE, apply_all, read_patches
from engine.claims.quantity import parse_quantity

MIB: Final = 1 << 20
LOG_BYTES: Final = 5 * 10 * MIB
"""Five files of 10 MiB, which kubelet keeps of a container by default (containerLogMaxFiles, containerLogMaxSize):
https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/"""
BYTES_BESIDE_VOLUMES: Final = {
    # Ten files of 100 MB of the garbage collector's log (kafka-run-class.sh).
    "apache/kafka:4.3.1": 10 * 100 * MIB,
    # 32 files of 64 MB of the same (jvm.options), and a dump of a heap of 512 MiB.
    "opensearchproject/opensearch:3.8.0": (32 * 64 + 512) * MIB,
}
"""Files of others' images in the container itself, which has no read-only root."""
WORKLOADS: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"})


def iterate_pods() -> Iterator[tuple[str, Any]]:
    """Iterate over the pods of every file, and over those that the small overlay makes of them."""
    small = tuple(patch for patch in read_patches("overlays/small") if patch.operations)
    for path in sorted(KUSTOMIZE.rglob("*.yaml")):
        for item in yaml.safe_load_all(path.read_text("utf-8")):
            if isinstance(item, dict) and item.get("kind") in WORKLOADS and not _is_patch(item):
                name = f"{path.relative_to(KUSTOMIZE)} {item['metadata']['name']}"
                yield name, _get_pod(item)
                yield f"small {name}", _get_pod(apply_all(item, small))


def _is_patch(item: Any) -> bool:
    """Tell a patch of another's workload from a workload, of which the API server wants an image in each container."""
    return not all("image" in container for container in _get_pod(item)["containers"])


def _get_pod(item: Any) -> Any:
    spec = item["spec"]
    return spec.get("jobTemplate", {}).get("spec", spec)["template"]["spec"]


def read_bytes(amounts: dict[str, str]) -> int:
    amount = parse_quantity(amounts["ephemeral-storage"]).integer
    assert amount is not None
    return amount


PODS: Final = dict(iterate_pods())


def test_there_are_pods() -> None:
    assert len(PODS) > 40


@pytest.mark.parametrize("name", PODS)
def test_every_container_asks_for_the_disk_that_it_takes(name: str) -> None:
    for container in PODS[name]["containers"]:
        resources = container["resources"]
        assert 0 < read_bytes(resources["requests"]) <= read_bytes(resources["limits"]), container["name"]


@pytest.mark.parametrize("name", PODS)
def test_volumes_and_logs_reach_their_own_limits_before_the_pod_is_evicted(name: str) -> None:
    """Kubelet adds logs, emptyDirs and what is written beside them, and compares the sum with that of the limits:
    https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/#local-ephemeral-storage"""
    pod = PODS[name]
    volumes = [volume["emptyDir"]["sizeLimit"] for volume in pod.get("volumes", ()) if "emptyDir" in volume]
    written = sum(parse_quantity(size).integer or 0 for size in volumes)
    for container in pod["containers"]:
        written += LOG_BYTES + BYTES_BESIDE_VOLUMES.get(container["image"], 0)
    assert written <= sum(read_bytes(container["resources"]["limits"]) for container in pod["containers"])
