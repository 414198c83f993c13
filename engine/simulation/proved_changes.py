"""Search for changes after which a simulated pod fits: of its device requests, of devices, and of the nodes' state."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engine.fit.devices.pod_usage import PodUse
from engine.simulation.cluster import SimulationCluster
from engine.simulation.node_changes import find_node_changes
from engine.simulation.setting import SimulationSetting
from engine.simulation.verdict import PodVerdict
from engine.suggestions.acts import Holders, list_nodes_to_empty
from engine.suggestions.answer import ProvedSuggestions
from engine.suggestions.ask import Ask, Constraint
from engine.suggestions.exclusion import find_excluding_constraints
from engine.suggestions.suggest import suggest
from engine.suggestions.suggestion import Suggestion
from engine.suggestions.trial import Trial
from schemas.answers.suggestions import SuggestedChange


@dataclass(frozen=True, slots=True)
class ProvedChanges:
    """Changes of devices and requests by HAMi's fit, and changes of what the filters look at."""

    of_devices: ProvedSuggestions = field(default_factory=lambda: ProvedSuggestions([], [], fits=True))
    of_nodes: Sequence[SuggestedChange] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    """Pods by UID."""
    unknown: Sequence[str] = ()

    @property
    def excluded_by(self) -> list[Constraint]:
        """Smallest set of constraints that keeps the pod from the nodes that the filters let pass."""
        return self.of_devices.excluded_by


def find_changes(cluster: SimulationCluster, verdict: PodVerdict, setting: SimulationSetting) -> ProvedChanges:
    """Find the changes; none where the pod has to be corrected first."""
    of_nodes = find_node_changes(cluster, verdict, setting)
    attempt = verdict.attempt
    if attempt is None or verdict.decision is None:
        return ProvedChanges(of_nodes=of_nodes)
    ask = Ask.from_attempt(attempt.pod, attempt.requests, attempt.constraints or {}, cluster.vendors)
    trial = Trial(cluster.columns, tuple(verdict.decision.node_names), setting.policy)
    holders, names = _collect_holders(cluster, list_nodes_to_empty(trial, ask))
    items = [item for item in suggest(trial, ask, holders) if not needs_other_nodes(item)]
    proved = ProvedSuggestions(items, find_excluding_constraints(trial, ask), fits=False)
    return ProvedChanges(proved, of_nodes, names)


def needs_other_nodes(suggestion: Suggestion) -> bool:
    """Tell whether a suggestion only says that nodes are closed; what opens them is suggested by itself."""
    return any(edit.constraint == "nodes" for edit in suggestion.edits)


def _collect_holders(cluster: SimulationCluster, nodes: list[str]) -> tuple[Holders, dict[str, str]]:
    """Collect what the pods of these nodes hold, and the names of the pods by UID."""
    holders: dict[str, dict[str, PodUse]] = {node: {} for node in nodes}
    names: dict[str, str] = {}
    for pod in cluster.list_kind("Pod"):
        metadata = pod["metadata"]
        use = cluster.columns.get_pod_use(str(metadata.get("uid", "")))
        if use and use.node in holders:
            holders[use.node][metadata["uid"]] = use
            names[metadata["uid"]] = f"{metadata.get('namespace', 'default')}/{metadata['name']}"
    return holders, names
