"""Kueue's message on a Workload without quota: what each set of pods lacks in which flavor, as every release writes it.

A message has a part for each set of pods, and a part has a reason for each flavor that was tried. The Workload starts
only if all of its sets do, so a set that no flavor can ever take says more than one that waits. Kueue's source:
pkg/scheduler/flavorassigner; releases to v0.14 print one number that is asked, those to v0.8 know no maximum.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from engine.diagnosis.outcome import Word
from engine.diagnosis.texts import write_phrase
from runtime.kubernetes.object_fields import Fields, get_text, iterate_objects
from schemas.answers.diagnosis import InBothLanguages

_SET: Final = re.compile(r"couldn't assign flavors to pod set [^\s:]+: ")
_NEXT_REASON: Final = re.compile(
    r", (?=insufficient |borrowing limit |untolerated |[fF]lavor |resource |topology |no )"
)
_UNUSED: Final = re.compile(
    r"insufficient unused quota (?:in cohort )?for (?P<resource>[^\s,;]+) (?:in )?flavor (?P<flavor>[^\s,;]+), "
    r"(?P<needed>[^\s,;]+) more needed"
)
_LIMIT: Final = re.compile(r"borrowing limit for (?P<resource>[^\s,;]+) in flavor (?P<flavor>[^\s,;]+) exceeded")
_MAXIMUM: Final = re.compile(
    r"insufficient quota for (?P<resource>[^\s,;]+) in flavor (?P<flavor>[^\s,;]+)(?:"
    r", request > maximum capacity \((?P<request>[^()\s]+) > (?P<total>[^()\s]+)\)|"
    r", previously considered podsets requests \((?P<before>[^()]*)\) \+ current podset request \((?P<asked>[^()]*)\)"
    r" > maximum capacity \((?P<maximum>[^()]*)\)|"
    r".*? maximum capacity \((?P<other>[^()]*)\)|"
    r" in ClusterQueue)"
)
_TAINT: Final = re.compile(r"untolerated taint \{(?P<taint>[^}]*)\} in flavor (?P<flavor>[^\s,;]+)")
_GO_TAINT: Final = re.compile(r"(?P<key>\S+) (?P<value>\S*) ?(?P<effect>NoSchedule|NoExecute|PreferNoSchedule)\b")
_UNCOVERED: Final = re.compile(r"resource [^\s,;]+ unavailable in ClusterQueue")
_MISMATCHES: Final = (
    (re.compile(r"flavor (?P<flavor>[^\s,;]+) doesn't match (?:node|with node) affinity"), "flavor_affinity"),
    (re.compile(r"flavor (?P<flavor>[^\s,;]+) not found"), "flavor_absent"),
    (re.compile(r"Flavor \"(?P<flavor>[^\"]+)\" does not support TopologyAwareScheduling"), "flavor_without_topology"),
    (re.compile(r"Flavor \"(?P<flavor>[^\"]+)\" supports only TopologyAwareScheduling"), "flavor_of_topology"),
    (re.compile(r"Flavor \"(?P<flavor>[^\"]+)\" does not contain the requested level"), "flavor_without_level"),
)
"""Reasons for which a flavor does not suit a set of pods, next to taints and maxima, with their phrases."""


class QuotaShortage(NamedTuple):
    """Resource of which a flavor has too little unused quota. ``needed``: empty at the limit of borrowing."""

    resource: str
    flavor: str
    needed: str = ""


class QuotaMaximum(NamedTuple):
    """Resource of which a flavor never has enough. ``request``, ``limit``: empty where Kueue does not write them."""

    resource: str
    flavor: str
    request: str = ""
    limit: str = ""


def find_shortages(message: str) -> list[QuotaShortage]:
    """Find the resources of which the message says that too little quota is unused."""
    matches = [*_UNUSED.finditer(message), *_LIMIT.finditer(message)]
    needs = [match.groupdict().get("needed") or "" for match in matches]
    return [
        QuotaShortage(match["resource"], match["flavor"], needed.rstrip("."))
        for match, needed in zip(matches, needs, strict=True)
    ]


def find_maxima(message: str) -> list[QuotaMaximum]:
    """Find the resources of which the message says that more is asked than the queue may ever have."""
    matches = list(_MAXIMUM.finditer(message))
    limits = [match["total"] or match["maximum"] or match["other"] or "" for match in matches]
    return [
        QuotaMaximum(match["resource"], match["flavor"], _get_request(match), limit)
        for match, limit in zip(matches, limits, strict=True)
    ]


def _get_request(match: re.Match[str]) -> str:
    """Get the amount that is asked, with what other sets of the same Workload ask before it."""
    before = match["before"] if match["before"] not in (None, "", "0") else ""
    request = match["request"] or match["asked"] or ""
    return f"{before} + {request}" if before else request


def list_refusals(message: str) -> list[InBothLanguages]:
    """Describe why flavors are out that do not wait for quota."""
    return [phrase for _, phrase in _iterate_refusals(message)]


def choose_part(message: str, queue: Fields | None) -> str:
    """Choose the reasons of the first set of pods that can't start in any flavor of a resource group; else all."""
    groups = _index_flavors(queue)
    for part in _SET.split(message):
        reasons: dict[int, list[str]] = {}
        for reason in _NEXT_REASON.split(part):
            reasons.setdefault(_find_group(reason, groups), []).append(reason)
        for texts in reasons.values():
            joined = ", ".join(texts).rstrip("; ")
            if _excludes_start(joined):
                return joined
    return message


def _excludes_start(reasons: str) -> bool:
    """Tell whether each flavor that the reasons name is out, whatever ends."""
    refused = {flavor for flavor, _ in _iterate_refusals(reasons)}
    waiting = {shortage.flavor for shortage in find_shortages(reasons)} - refused
    # Kueue tries the topology of a flavor after its quota, which sufficed.
    return not waiting and "topology " not in reasons and bool(refused or _UNCOVERED.search(reasons))


def _find_group(reason: str, groups: dict[str, int]) -> int:
    """Find the resource group of the flavor that a reason names; all are one where the queue was not read."""
    flavors = [shortage.flavor for shortage in find_shortages(reason)] + [
        flavor for flavor, _ in _iterate_refusals(reason)
    ]
    return groups.get(flavors[0], 0) if flavors else -1 if _UNCOVERED.search(reason) else 0


def _index_flavors(queue: Fields | None) -> dict[str, int]:
    return {
        get_text(flavor, "name"): index
        for index, group in enumerate(iterate_objects(queue, "spec", "resourceGroups"))
        for flavor in iterate_objects(group, "flavors")
    }


def _iterate_refusals(message: str) -> Iterator[tuple[str, InBothLanguages]]:
    """Iterate over the flavors that are out, with the description why."""
    for match in _TAINT.finditer(message):
        yield match["flavor"], write_phrase("flavor_taint", flavor=match["flavor"], taint=_format_taint(match["taint"]))
    for pattern, phrase in _MISMATCHES:
        for match in pattern.finditer(message):
            yield match["flavor"], write_phrase(phrase, flavor=match["flavor"])
    yield from ((maximum.flavor, _describe_maximum(maximum)) for maximum in find_maxima(message))


def _describe_maximum(maximum: QuotaMaximum) -> InBothLanguages:
    words: dict[str, Word] = maximum._asdict()
    if not maximum.limit:
        return write_phrase("flavor_maximum_unnamed", **words)
    return write_phrase("flavor_maximum" if maximum.request else "flavor_maximum_of_more", **words)


def _format_taint(printed: str) -> str:
    """Format a taint that Kueue prints as Go prints a struct: ``spot true NoSchedule <nil>``."""
    match = _GO_TAINT.match(printed)
    if match is None:
        return printed
    value = f"={match['value']}" if match["value"] else ""
    return f"{match['key']}{value}:{match['effect']}"
