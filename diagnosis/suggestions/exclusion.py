"""The smallest set of constraints that together keep a pod from every node."""

from typing import Final

from diagnosis.suggestions.ask import OF_ANNOTATIONS, Ask, Constraint
from diagnosis.suggestions.trial import Trial

_LIFTED: Final[tuple[Constraint, ...]] = ("nodes", "cordon", "health", "quota", "use")
_ALL: Final[tuple[Constraint, ...]] = ("cores", "count", "memory")


def excluding_constraints(trial: Trial, ask: Ask) -> list[Constraint]:
    """These alone keep it from every node, and none of them can be left out of that statement.

    Empty where the pod fits, or where it would not fit without any of them either. Found by leaving out one constraint
    after the other for good, as long as the pod still fits nowhere.
    """
    annotated = [each for each in OF_ANNOTATIONS if ask.annotation_keys(each)]
    lifted = [each for each in _LIFTED if trial.is_in_force(ask, each)]
    candidates: list[Constraint] = [*lifted, *annotated, *_ALL]
    if _fits(trial, ask, []) or not _fits(trial, ask, candidates):
        return []
    # One that excludes every node by itself says more than several that do so together.
    for constraint in candidates:
        if not _fits(trial, ask, [other for other in candidates if other != constraint]):
            return [constraint]
    gone: list[Constraint] = []
    for constraint in candidates:
        if not _fits(trial, ask, [*gone, constraint]):
            gone.append(constraint)
    return [constraint for constraint in candidates if constraint not in gone]


def _fits(trial: Trial, ask: Ask, gone: list[Constraint]) -> bool:
    eased = ask.without(gone)
    if "memory" in gone:
        eased = eased.capped("memory_mib", 1).capped("memory_percentage", 1)
    if "cores" in gone:
        eased = eased.capped("cores", 0)
    if "count" in gone:
        eased = eased.capped("count", 1)
    return trial.fits(eased, [each for each in _LIFTED if each in gone])
