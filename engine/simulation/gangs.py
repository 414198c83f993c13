"""Gangs in a simulation: pods that start only together are placed one after the other, and counted together.

A scheduler of gangs does the same: it looks for nodes for one member after the other, with the earlier ones in place.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from engine.diagnosis.layers.group_members import find_group_of_pod
from engine.diagnosis.outcome import Word
from engine.diagnosis.texts import write_phrase
from engine.simulation.setting import Note
from engine.simulation.verdict import PodOutcome, PodVerdict
from engine.simulation.workloads import PodTemplate
from engine.snapshot.case_objects import collect_objects
from runtime.kubernetes.object_fields import get_text
from schemas.json_types import Json


@dataclass(frozen=True, slots=True)
class SimulatedGang:
    """Pods of a workload that start only together, perhaps with those of other workloads."""

    name: str
    workload: PodTemplate
    minimum: int
    """Number of members that still have to be placed before any of them starts."""
    size: int
    """Number of pods of the workload to place; a Pod stands for itself."""


def find_gang(workload: PodTemplate, objects: Iterable[Json]) -> SimulatedGang | None:
    """Find the gang that the marks of the workload's pods name; None for pods that start on their own.

    Without the object that names the minimum, all pods of the workload start together.
    """
    if workload.gang:
        return SimulatedGang(workload.gang, workload, workload.gang_minimum, workload.replicas)
    if find_group_of_pod(workload.pod, None, "") is None:
        return None
    namespace = get_text(workload.pod, "metadata", "namespace")
    group = find_group_of_pod(workload.pod, collect_objects(objects), namespace)
    if group is None:
        return None
    placed = sum(1 for member in group.members if get_text(member, "spec", "nodeName"))
    minimum = max(1, (group.minimum or workload.replicas) - placed)
    return SimulatedGang(group.name, workload, minimum, 1 if workload.kind == "Pod" else minimum)


def describe_gangs(
    gangs: Sequence[SimulatedGang], verdicts: Sequence[tuple[PodTemplate, PodVerdict]]
) -> Iterator[Note]:
    """Describe how many pods of each gang fit one after the other, and the first that does not."""
    for name in dict.fromkeys(gang.name for gang in gangs):
        parts = [gang for gang in gangs if gang.name == name]
        workloads = [id(gang.workload) for gang in parts]
        members = [verdict for workload, verdict in verdicts if id(workload) in workloads]
        if len(members) > 1:
            yield _describe_gang(name, max(gang.minimum for gang in parts), members)


def _describe_gang(name: str, minimum: int, members: Sequence[PodVerdict]) -> Note:
    fitting = sum(1 for verdict in members if verdict.outcome is PodOutcome.FITS)
    waiting = [verdict for verdict in members if verdict.outcome is not PodOutcome.FITS]
    words: dict[str, Word] = {"group": name, "fitting": fitting, "members": len(members), "minimum": minimum}
    if not waiting:
        return Note("GangFits", write_phrase("gang_fits", **words))
    words["member"] = get_text(waiting[0].pod, "metadata", "name")
    if fitting >= minimum:
        return Note("GangFits", write_phrase("gang_starts", **words))
    return Note("GangWaits", write_phrase("gang_waits", **words))
