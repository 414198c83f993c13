"""Names of pods, workloads, nodes and namespaces in memory, for a search field and for names that do not exist."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from api.memory.cluster_devices import ClusterDevices
from api.memory.latest_attempts import LatestAttempts
from api.memory.wait_log import WaitLog
from engine.cases.similar_names import rank_similar_names

Kind = Literal["namespace", "node", "workload", "pod"]
_ORDER: Final[dict[Kind, int]] = {"namespace": 0, "node": 1, "workload": 2, "pod": 3}
_MAX_COMPARED: Final = 2_000
"""Maximum number of names that are compared letter by letter, which takes some 20 microseconds each."""
_MAX_LONGER: Final = 8


class KnownName(NamedTuple):
    kind: Kind
    namespace: str
    """Namespace; empty for a node, and for a namespace."""
    name: str
    """Name; of a workload with its kind, such as ``job/train``."""

    @property
    def text(self) -> str:
        """Name as people write it in one field: ``llm/train-0``, ``llm/job/train``, ``node3``, ``llm/``."""
        if self.kind == "namespace":
            return f"{self.name}/"
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class KnownNames:
    latest: LatestAttempts
    waits: WaitLog
    devices: ClusterDevices

    def find_matches(self, cluster: str, text: str) -> list[KnownName]:
        """Find the names that contain the text, those that begin with it first, in a fixed order."""
        wanted = text.strip().lower()
        ranked = [
            (rank, name) for name in self._iterate_names(cluster) if (rank := _rank_match(name, wanted)) is not None
        ]
        return [name for _, name in sorted(ranked, key=lambda item: (item[0], _ORDER[item[1].kind], item[1].text))]

    def find_similar(self, cluster: str, namespace: str, name: str) -> list[KnownName]:
        """Find pods or, without a namespace, nodes that are named alike: the same name elsewhere comes first."""
        kind: Kind = "pod" if namespace else "node"
        names = {
            entry.text: entry
            for entry in self._iterate_names(cluster)
            if entry.kind == kind and (entry.name == name or _may_resemble(entry.name, name))
        }
        compared = dict(list(names.items())[:_MAX_COMPARED])
        texts = rank_similar_names(((entry.namespace, entry.name) for entry in compared.values()), namespace, name)
        return [compared[text.removeprefix("/")] for text in texts]

    def _iterate_names(self, cluster: str) -> Iterator[KnownName]:
        columns = self.devices.find_columns(cluster)
        yield from (KnownName("node", "", name) for name in (columns.node_names if columns else ()))
        pods = dict.fromkeys((*self.latest.list_pod_names(cluster), *self.waits.list_pod_names(cluster)))
        yield from (KnownName("namespace", "", namespace) for namespace in dict.fromkeys(pod[0] for pod in pods))
        for namespace, name in dict.fromkeys((*pods, *self.latest.list_workload_names(cluster))):
            yield KnownName("workload" if "/" in name else "pod", namespace, name)


def _rank_match(name: KnownName, wanted: str) -> int | None:
    """Rank how well a name matches: 0 equal, 1 its beginning, 2 a part of it; None where it does not."""
    texts = (name.text.lower(), name.name.lower())
    if wanted in texts:
        return 0
    if any(text.startswith(wanted) for text in texts):
        return 1
    return 2 if wanted in texts[0] else None


def _may_resemble(name: str, wanted: str) -> bool:
    """Tell cheaply whether a name is worth a comparison: a similar length, and a common beginning or end."""
    return abs(len(name) - len(wanted)) <= _MAX_LONGER and (name[:2] == wanted[:2] or name[-3:] == wanted[-3:])


def write_question(names: Iterable[KnownName]) -> str:
    """Write "Did you mean …?"; empty without names."""
    texts = [name.text for name in names]
    return f"Did you mean {' or '.join(texts)}? " if texts else ""
