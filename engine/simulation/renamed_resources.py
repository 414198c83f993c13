"""Resources of a pod that the device table does not know, on a cluster that offers its devices under other names."""

from collections.abc import Mapping
from typing import Any, Final

from engine.diagnosis.outcome import FoundObstacle, Word
from engine.diagnosis.wording import shorten_list
from engine.simulation.admission import AdmittedPod
from engine.simulation.cluster import SimulationCluster
from engine.simulation.ignored_words import is_mig_resource, list_unknown_resources

TABLE_UNKNOWN: Final = "ResourceNotInTable"


def find_table_obstacles(
    cluster: SimulationCluster, pod: Mapping[str, Any], admitted: AdmittedPod
) -> tuple[FoundObstacle, ...]:
    """Find resources that a device table which fits the cluster would know.

    Nodes that register devices and offer none under the table's name offer them under another: HAMi's resources are
    renamed there, and nothing is known about what the pod asks for.
    """
    if not admitted.is_hamis or not cluster.has_hami:
        return ()
    unknown = [name for name in list_unknown_resources(pod, cluster.vendors) if not is_mig_resource(name)]
    renamed = [name for name in unknown if _is_renamed(cluster, name)]
    if not renamed:
        return ()
    words: dict[str, Word] = {"resources": shorten_list(renamed), "count": len(renamed)}
    return (FoundObstacle(TABLE_UNKNOWN, words),)


def _is_renamed(cluster: SimulationCluster, resource: str) -> bool:
    domain = resource.partition("/")[0]
    names = [vendor.resources.count for vendor in cluster.vendors]
    counts = [name for name in names if name.partition("/")[0] == domain]
    nodes = [cluster.snapshot.nodes[name].node for name in cluster.columns.node_names if name in cluster.snapshot.nodes]
    return bool(nodes) and not any(node.allocatable.get(count, 0) for node in nodes for count in counts)
