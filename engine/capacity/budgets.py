"""Disruption budgets (``policy/v1``) as the API server's eviction applies them to the pods of a plan.

An eviction is refused while a budget that selects the pod allows no disruption. One that is granted uses up a
disruption until the pod's owner has made it again and it is ready somewhere else.
"""

from collections.abc import Iterator, Mapping
from copy import copy
from typing import Any, Final, NamedTuple

from engine.diagnosis.texts import write_phrase
from engine.diagnosis.wording import shorten_list
from engine.simulation.cluster import SimulationCluster
from engine.snapshot import kinds
from engine.snapshot.fields import FieldError, Object
from engine.snapshot.selectors import LabelSelector, read_label_selector
from runtime.kubernetes.object_fields import get_object, get_text, iterate_objects
from schemas.answers.diagnosis import InBothLanguages

_ALWAYS: Final = "AlwaysAllow"


class Budget(NamedTuple):
    """A budget with its selector."""

    object: Object
    namespace: str
    name: str
    selector: LabelSelector

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    def count(self, field: str) -> int:
        """Return a number of its status; 0 where its controller has not written it."""
        number = get_object(self.object, "status").get(field)
        return number if isinstance(number, int) else 0

    @property
    def is_counted(self) -> bool:
        """True if its controller has counted its pods since it was changed."""
        generation = get_object(self.object, "metadata").get("generation") or 0
        return bool(get_object(self.object, "status")) and self.count("observedGeneration") >= generation


class Budgets:
    """Budgets of a cluster, and the disruptions that each still allows."""

    def __init__(self, cluster: SimulationCluster) -> None:
        """Read the budgets of a cluster; one that no API server stores is passed over."""
        self._budgets = list(_iterate_budgets(cluster))
        self._allowed = {str(budget): budget.count("disruptionsAllowed") for budget in self._budgets}
        self.is_known = bool(self._budgets) or kinds.DISRUPTION_BUDGET in cluster.listed
        """False where nobody has listed budgets, and none was read."""

    def copy(self) -> "Budgets":
        """Copy the budgets, for a plan that is only tried."""
        copied = copy(self)
        copied._allowed = dict(self._allowed)
        return copied

    def select(self, pod: Mapping[str, Any]) -> list[Budget]:
        """Select the budgets of a pod."""
        labels = get_object(pod, "metadata", "labels")
        namespace = get_text(pod, "metadata", "namespace") or "default"
        return [budget for budget in self._budgets if budget.namespace == namespace and budget.selector.matches(labels)]

    def refuse(self, pod: Mapping[str, Any]) -> InBothLanguages | None:
        """Return the reason for which the pod may not be evicted now; None where it may."""
        budgets = self.select(pod)
        if not budgets or not _is_running(pod):
            return None
        if len(budgets) > 1:
            return write_phrase("budgets_several", budgets=shorten_list([str(budget) for budget in budgets]))
        budget = budgets[0]
        if _passes_as_unhealthy(budget, pod):
            return None
        if not budget.is_counted:
            return write_phrase("budget_uncounted", budget=str(budget))
        if self._allowed[str(budget)] > 0:
            return None
        healthy, desired = budget.count("currentHealthy"), budget.count("desiredHealthy")
        return write_phrase("budget_spent", budget=str(budget), healthy=healthy, desired=desired)

    def evict(self, pod: Mapping[str, Any], *, is_replaced: bool) -> None:
        """Note an eviction. is_replaced: the pod is made again and starts on another node, which is waited for."""
        if is_replaced:
            return
        for budget in self.select(pod):
            if _is_running(pod) and not _passes_as_unhealthy(budget, pod):
                self._allowed[str(budget)] -= 1


def _iterate_budgets(cluster: SimulationCluster) -> Iterator[Budget]:
    for (namespace, name), entry in cluster.snapshot.get_objects(kinds.DISRUPTION_BUDGET).items():
        try:
            selector = read_label_selector(get_object(entry, "spec"), "selector")
        except FieldError:
            continue
        yield Budget(entry, namespace, name, selector)


def _is_running(pod: Mapping[str, Any]) -> bool:
    """Tell whether budgets count for the pod: one that has not started, has ended or is being deleted may go."""
    return get_text(pod, "status", "phase") == "Running" and not get_text(pod, "metadata", "deletionTimestamp")


def _passes_as_unhealthy(budget: Budget, pod: Mapping[str, Any]) -> bool:
    """Tell whether the pod may go because it is not ready; one whose conditions were not read counts as ready."""
    conditions = iterate_objects(pod, "status", "conditions")
    ready = next((entry for entry in conditions if get_text(entry, "type") == "Ready"), None)
    if ready is None or get_text(ready, "status") == "True":
        return False
    if get_text(budget.object, "spec", "unhealthyPodEvictionPolicy") == _ALWAYS:
        return True
    return budget.count("currentHealthy") >= budget.count("desiredHealthy") > 0
