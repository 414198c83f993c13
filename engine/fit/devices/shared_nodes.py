"""Nodes on which another scheduler of HAMi's protocol gives devices away, by the pods that hold them. Pure.

Each of two such schedulers sees what the other has given away only after it was written: on one node they could give
one device away twice. So ours withholds a node from its decisions while a pod of another scheduler holds devices there
(docs/decisions/0053). A pod's scheduler is its `spec.schedulerName`: pods that HAMi placed before it was replaced name
the scheduler that we are now.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.devices.pod_usage import explain_overclaim, has_ended
from engine.hami.annotations import ASSIGNED_NODE
from engine.hami.go_values import to_mapping


class _Holder(NamedTuple):
    node: str
    scheduler: str


class SharedNodes:
    """Withholds nodes of `columns`. schedulers: names whose pods withhold no node, ours among them."""

    def __init__(self, columns: ClusterColumns, schedulers: Collection[str]) -> None:
        self._columns, self._schedulers = columns, frozenset(schedulers)
        self._holders: dict[str, _Holder] = {}
        """Pods of other schedulers by UID."""
        self._nodes: dict[str, Counter[str]] = {}
        """Pods on each withheld node by scheduler."""

    def on_pod(self, pod: Mapping[str, Any]) -> None:
        """Note a pod that has not ended and whose annotations a scheduler wrote."""
        uid, holder = pod["metadata"]["uid"], _read_holder(pod, self._schedulers)
        if self._holders.get(uid) == holder:
            return
        self.on_pod_deleted(uid)
        if holder:
            self._holders[uid] = holder
            self._nodes.setdefault(holder.node, Counter())[holder.scheduler] += 1
            self._exclude(holder.node)

    def accept(self, scheduler: str) -> None:
        """Accept a scheduler that asks our extender: what it gives away we decide."""
        if scheduler in self._schedulers:
            return
        self._schedulers |= {scheduler}
        for uid in [uid for uid, holder in self._holders.items() if holder.scheduler == scheduler]:
            self.on_pod_deleted(uid)

    def on_pod_deleted(self, uid: str) -> None:
        """Forget a pod that is gone or has ended."""
        if (holder := self._holders.pop(uid, None)) is None:
            return
        self._nodes[holder.node] -= Counter({holder.scheduler: 1})
        if self._nodes[holder.node]:
            self._exclude(holder.node)
        else:
            del self._nodes[holder.node]
            self._columns.return_node(holder.node)

    def _exclude(self, node: str) -> None:
        self._columns.exclude_node(node, _describe_holders(self._nodes[node]))


def list_shared_nodes(
    columns: ClusterColumns, pods: Iterable[Mapping[str, Any]], schedulers: Collection[str]
) -> dict[str, str]:
    """List the registered nodes where pods of other schedulers hold devices, with the cause, as `SharedNodes` withholds
    them."""
    nodes: dict[str, set[str]] = {}
    for pod in pods:
        if (
            not has_ended(pod)
            and (holder := _read_holder(pod, schedulers))
            # As our scheduler's observer: annotations that are no scheduler's hold nothing.
            and not explain_overclaim(pod, columns.vendors)
        ):
            nodes.setdefault(holder.node, set()).add(holder.scheduler)
    return {node: _describe_holders(names) for node, names in nodes.items() if columns.get_entry(node)}


def _read_holder(pod: Mapping[str, Any], schedulers: Collection[str]) -> _Holder | None:
    """Read where a pod of another scheduler holds devices; None for all other pods."""
    scheduler = to_mapping(pod.get("spec")).get("schedulerName")
    node = str(to_mapping(to_mapping(pod.get("metadata")).get("annotations")).get(ASSIGNED_NODE) or "")
    # An API server always writes the scheduler; in a file it may be missing.
    return _Holder(node, scheduler) if node and scheduler and scheduler not in schedulers else None


def _describe_holders(schedulers: Collection[str]) -> str:
    # Without the pods' names: the cause is shown to users who may not see other namespaces.
    return f"pods of {' and '.join(sorted(schedulers))} hold devices there"
