"""Pods placed in a simulated cluster or taken away, one after the other, each on what the ones before it leave."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from engine.fit.devices.pod_usage import PodUse
from engine.fit.judge.reservation import reserve
from engine.simulation.cluster import SimulationCluster
from engine.simulation.held_claims import hold_claims
from engine.simulation.kai_shares import asks_kai_share, hold_share
from engine.simulation.verdict import PodOutcome, PodVerdict
from engine.snapshot import kinds
from engine.snapshot.reading import change_snapshot
from runtime.kubernetes.object_fields import get_object, get_text
from schemas.json_types import Json


class PodPlacer:
    """A cluster with the changes of its pods; its columns have them until `release`."""

    def __init__(self, cluster: SimulationCluster) -> None:
        self.cluster = cluster
        self._columns = cluster.columns
        self._before: list[tuple[str, PodUse | None]] = []

    def bind(self, verdict: PodVerdict) -> None:
        """Hold what the pod takes, so that the next one is judged after it.

        Where kube-scheduler's scores would choose among several nodes, it is the first of them.
        """
        node = verdict.node or (verdict.fitting[0] if verdict.fitting else None)
        if verdict.outcome is PodOutcome.REFUSED or node is None:
            return
        uid = get_text(verdict.pod, "metadata", "uid")
        self._before.append((uid, self._columns.get_pod_use(uid)))
        if verdict.decision:
            reserve(self._columns, verdict.decision, verdict.pod)
        spec = {**get_object(verdict.pod, "spec"), "nodeName": node}
        placed = {**verdict.pod, "spec": spec, "status": {**get_object(verdict.pod, "status"), "phase": "Running"}}
        info = self.cluster.snapshot.nodes.get(node)
        pods = hold_share(info, placed) if info and asks_kai_share(placed) else [placed]
        claims = hold_claims(self.cluster, verdict.pod, node)
        self.cluster = self.cluster.with_objects([*pods, *claims])

    def end(self, pod: Json) -> None:
        """Take a pod of the cluster away, with what it holds."""
        namespace, name, uid = (get_text(pod, "metadata", field) for field in ("namespace", "name", "uid"))
        self._before.append((uid, self._columns.get_pod_use(uid)))
        self._columns.delete_pod(uid)
        snapshot = change_snapshot(self.cluster.snapshot, removed=[(kinds.POD, namespace, name)])
        self.cluster = replace(self.cluster, snapshot=snapshot)

    def release(self) -> None:
        """Give the columns back what they had before."""
        for uid, before in reversed(self._before):
            self._columns.delete_pod(uid)
            if before:
                self._columns.hold(uid, before)
        self._before.clear()


@contextmanager
def placing_pods(cluster: SimulationCluster) -> Iterator[PodPlacer]:
    """Placer whose pods are released at the end of the context."""
    placer = PodPlacer(cluster)
    try:
        yield placer
    finally:
        placer.release()
