"""Names of pods, workloads, nodes and namespaces in memory, for a search field and for names that do not exist."""

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nlargest
from operator import eq
from typing import Final, Literal, NamedTuple

from api.memory.cluster_devices import ClusterDevices
from api.memory.latest_attempts import LatestAttempts
from api.memory.wait_log import WaitLog
from engine.cases.similar_names import rank_similar_names

Kind = Literal["namespace", "node", "workload", "pod"]
_ORDER: Final[dict[Kind, int]] = {"namespace": 0, "node": 1, "workload": 2, "pod": 3}
_MAX_COMPARED: Final = 500
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

    def list_names(self, cluster: str) -> list[str]:
        """List every name as people write it in one field."""
        columns = self.devices.find_columns(cluster)
        named = dict.fromkeys((*self.latest.list_names(cluster), *self.waits.list_names(cluster)))
        namespaces = {name[: name.index("/") + 1] for name in named}
        return [*(columns.node_names if columns else ()), *namespaces, *named]


def find_matches(names: Iterable[str], text: str) -> list[KnownName]:
    """Find the names that contain the text, those that begin with it first, in a fixed order."""
    wanted = text.strip().lower()
    # Names of Kubernetes are in small letters. Thousands of other pods are passed over before they are taken apart.
    named = [to_known_name(name) for name in names if wanted in name]
    ranked = [(rank, name) for name in named if (rank := _rank_match(name, wanted)) is not None]
    return [name for _, name in sorted(ranked, key=lambda item: (item[0], _ORDER[item[1].kind], item[1].text))]


def find_similar(names: Iterable[str], namespace: str, name: str) -> list[KnownName]:
    """Find pods or, without a namespace, nodes that are named alike: the same name elsewhere comes first."""
    slashes = 1 if namespace else 0
    alike = [text for text in names if text.count("/") == slashes and _may_resemble(_cut_namespace(text), name)]
    likely = nlargest(_MAX_COMPARED, alike, key=lambda text: sum(map(eq, _cut_namespace(text), name)))
    compared = {text: to_known_name(text) for text in likely}
    texts = rank_similar_names(((entry.namespace, entry.name) for entry in compared.values()), namespace, name)
    return [compared[text.removeprefix("/")] for text in texts]


def to_known_name(text: str) -> KnownName:
    """Take a name apart: ``llm/train-0``, ``llm/job/train``, ``node3``, ``llm/``."""
    namespace, is_namespaced, name = text.partition("/")
    if not is_namespaced:
        return KnownName("node", "", namespace)
    if not name:
        return KnownName("namespace", "", namespace)
    return KnownName("workload" if "/" in name else "pod", namespace, name)


def _cut_namespace(text: str) -> str:
    return text[text.find("/") + 1 :]


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
    is_as_long = bool(name) and abs(len(name) - len(wanted)) <= _MAX_LONGER
    return is_as_long and (name[:2] == wanted[:2] or name[-3:] == wanted[-3:])


def write_question(names: Iterable[KnownName]) -> str:
    """Write "Did you mean …?"; empty without names."""
    texts = [name.text for name in names]
    return f"Did you mean {' or '.join(texts)}? " if texts else ""
