"""The smallest set of constraints that together keep a pod from every node."""

from typing import Final, NamedTuple

from engine.suggestions.ask import ANNOTATION_CONSTRAINTS, Ask, Constraint
from engine.suggestions.nodes import UnregisteredNodes, restrict_trial
from engine.suggestions.trial import Trial

_LIFTED: Final[tuple[Constraint, ...]] = ("nodes", "registration", "cordon", "health", "quota", "use")
_ALL: Final[tuple[Constraint, ...]] = ("cores", "count", "memory")


def find_excluding_constraints(
    trial: Trial, ask: Ask, unregistered: UnregisteredNodes | None = None
) -> list[Constraint]:
    """Find constraints that together keep the pod from every node, and none of which can be left out.

    Empty if the pod fits, or if it would not fit without all of them either. The search leaves out one constraint after
    the other for good, as long as the pod still fits nowhere.
    """
    again = restrict_trial(trial, unregistered, trial.offered) if unregistered else None
    trials = _Trials(trial, again if again and again.offered else None)
    annotated = [annotation for annotation in ANNOTATION_CONSTRAINTS if ask.list_annotation_keys(annotation)]
    lifted = [constraint for constraint in _LIFTED if trials.is_in_force(ask, constraint)]
    candidates: list[Constraint] = [*lifted, *annotated, *_ALL]
    if trials.fits(ask, []) or not trials.fits(ask, candidates):
        return []
    # A constraint that excludes every node by itself says more than several that do so together.
    for constraint in candidates:
        if not trials.fits(ask, [other for other in candidates if other != constraint]):
            return [constraint]
    dropped: list[Constraint] = []
    for constraint in candidates:
        if not trials.fits(ask, [*dropped, constraint]):
            dropped.append(constraint)
    return [constraint for constraint in candidates if constraint not in dropped]


class _Trials(NamedTuple):
    """Trials on two kinds of nodes. registered: nodes with registered devices. again: nodes that would come back; None
    if there are none."""

    registered: Trial
    again: Trial | None

    def is_in_force(self, ask: Ask, constraint: Constraint) -> bool:
        if constraint == "registration":
            return self.again is not None
        return any(trial.is_in_force(ask, constraint) for trial in self if trial)

    def fits(self, ask: Ask, dropped: list[Constraint]) -> bool:
        eased = ask.without(dropped)
        if "memory" in dropped:
            eased = eased.cap("memory_mib", 1).cap("memory_percentage", 1)
        if "cores" in dropped:
            eased = eased.cap("cores", 0)
        if "count" in dropped:
            eased = eased.cap("count", 1)
        lifted = [constraint for constraint in _LIFTED if constraint in dropped]
        trials = self if "registration" in dropped else (self.registered,)
        return any(trial.fits(eased, lifted) for trial in trials if trial)
