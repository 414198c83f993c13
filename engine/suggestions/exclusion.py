"""The smallest set of constraints that together keep a pod from every node."""

from typing import Final, NamedTuple

from engine.suggestions.ask import OF_ANNOTATIONS, Ask, Constraint
from engine.suggestions.nodes import UnregisteredNodes, among
from engine.suggestions.trial import Trial

_LIFTED: Final[tuple[Constraint, ...]] = ("nodes", "registration", "cordon", "health", "quota", "use")
_ALL: Final[tuple[Constraint, ...]] = ("cores", "count", "memory")


def excluding_constraints(trial: Trial, ask: Ask, unregistered: UnregisteredNodes | None = None) -> list[Constraint]:
    """These alone keep it from every node, and none of them can be left out of that statement.

    Empty where the pod fits, or where it would not fit without any of them either. Found by leaving out one constraint
    after the other for good, as long as the pod still fits nowhere.
    """
    again = among(trial, unregistered, trial.offered) if unregistered else None
    trials = _Trials(trial, again if again and again.offered else None)
    annotated = [annotation for annotation in OF_ANNOTATIONS if ask.annotation_keys(annotation)]
    lifted = [constraint for constraint in _LIFTED if trials.is_in_force(ask, constraint)]
    candidates: list[Constraint] = [*lifted, *annotated, *_ALL]
    if trials.fits(ask, []) or not trials.fits(ask, candidates):
        return []
    # One that excludes every node by itself says more than several that do so together.
    for constraint in candidates:
        if not trials.fits(ask, [other for other in candidates if other != constraint]):
            return [constraint]
    gone: list[Constraint] = []
    for constraint in candidates:
        if not trials.fits(ask, [*gone, constraint]):
            gone.append(constraint)
    return [constraint for constraint in candidates if constraint not in gone]


class _Trials(NamedTuple):
    """registered: on the nodes that are registered. again: on those that would come back; None where there are none."""

    registered: Trial
    again: Trial | None

    def is_in_force(self, ask: Ask, constraint: Constraint) -> bool:
        if constraint == "registration":
            return self.again is not None
        return any(trial.is_in_force(ask, constraint) for trial in self if trial)

    def fits(self, ask: Ask, gone: list[Constraint]) -> bool:
        eased = ask.without(gone)
        if "memory" in gone:
            eased = eased.capped("memory_mib", 1).capped("memory_percentage", 1)
        if "cores" in gone:
            eased = eased.capped("cores", 0)
        if "count" in gone:
            eased = eased.capped("count", 1)
        lifted = [constraint for constraint in _LIFTED if constraint in gone]
        trials = self if "registration" in gone else (self.registered,)
        return any(trial.fits(eased, lifted) for trial in trials if trial)
