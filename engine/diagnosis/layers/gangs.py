"""Gangs: pods that start only together. A member is missing, or one of them fits nowhere and keeps all others waiting.

The member that fits nowhere has the nodes' reasons; the others have a text about the group. The texts are those of
Volcano (gang plugin), Koordinator and scheduler-plugins (Coscheduling), KAI (PodGroup) and Kubernetes (GangScheduling).
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from engine.diagnosis.facts import DiagnosisFacts, Evidence, JudgedGang
from engine.diagnosis.layers.group_members import Group, find_group, find_refused_member, iterate_group_statements
from engine.diagnosis.layers.node_reasons import describe_reasons, iterate_reasons
from engine.diagnosis.layers.pod_makers import find_maker
from engine.diagnosis.layers.statements import Statement, find_refusal
from engine.diagnosis.outcome import FoundObstacle, TreeStep, Word, to_answer
from engine.diagnosis.texts import write_sentence
from engine.diagnosis.wording import quote
from engine.snapshot import kinds
from schemas.answers.diagnosis import InBothLanguages

QUESTION: Final = "GangComplete"
_JUDGED: Final = ("GangWaits", "GangGaveBack", "GangHasNode")
"""Obstacles whose sentence also says how many members fit the nodes as they are."""

_VOLCANO: Final = re.compile(
    r"(?:\d+/(?P<tasks>\d+) tasks in gang unschedulable: )?"
    r"(?:pod group|job) is not ready, (?P<counts>(?:\d+ \w+, )*)(?P<minimum>\d+) minAvailable"
    r"(?P<more>(?:, \d+ \w+)*)(?:; (?P<pending>Pending: .*?))?"
    r"(?:\. Origin reason is(?: (?P<member>[^\s:]+))?: (?P<why>.*?))?\.?$",
    re.DOTALL,
)
"""Words of the gang plugin: of the tasks, all members that exist, some are missing from the minimum.

Its counts are sorted as texts, so that some may stand behind the minimum. Volcano up to 0.3 wrote of a job.
"""
_SKIPPED: Final = re.compile(r"^Task \S+ with role spec (?P<role>\S+) has already predicated failed, skip")
_KOORDINATOR_FEW: Final = re.compile(
    r"gang child pod not collect enough, gangName: (?P<old>[^\s,]+)|"
    r"child pod not collect enough,? .*?current gang: (?P<new>[^\s,]+)"
)
_KOORDINATOR_NEW: Final = re.compile(r"(?:gang )?has not init,? (?:.*?(?:gangName|current gang): (?P<group>[^\s,]+))?")
_KOORDINATOR_MEMBER: Final = re.compile(
    r"GangGroup \"(?P<group>[^\"]+)\" gets rejected due to (?:member )?Pod \"(?P<member>[^\"]+)\" is unschedulable"
    r"(?: with reason \"(?P<why>.*?)\"(?:, alreadyWaitForBound|$))?",
    re.DOTALL,
)
_SIBLINGS: Final = re.compile(
    r"cannot find enough sibling pods, current pods number: (?P<have>\d+), "
    r"minMember of group: (?P<minimum>\d+)"
)
_SIBLING_FAILED: Final = re.compile(
    r"PodGroup (?P<group>\S+) gets rejected due to Pod (?P<member>\S+) is unschedulable"
)
_FAILED_RECENTLY: Final = re.compile(
    r"(?:podGroup (?=\S+ failed recently)|pod with pgName: (?=\S+ last failed in ))(?P<group>\S+)"
)
_GATED: Final = re.compile(r"cannot proceed due to gated pods in the same PodGroup")
_GAVE_BACK: Final = re.compile(
    r"optimistic rejection in PostFilter|"
    r"rejected due to timeout after waiting \S+ at plugin (?:Coscheduling|GangScheduling)|"
    r"waiting for minCount pods from a gang to be (?:scheduled|waiting on permit)|gang is waiting on permit"
)
_HAS_NODE: Final = re.compile(r"can possibly be assigned to (?P<node>[^\s,]+), once (?P<once>.*minAvailable.*)")
_NATIVE_FEW: Final = re.compile(r"waiting for minCount pods from a gang to appear in scheduling queue")
_KAI_PART: Final = re.compile(
    r"Resources were found for (?P<fitting>\d+) pods while (?P<minimum>\d+) are required for gang scheduling\. "
    r"Additional pods cannot be scheduled due to: (?P<why>.*)",
    re.DOTALL,
)
_KAI_NOT_READY: Final = re.compile(
    r"Waiting for (?P<minimum>\d+) pods(?: for SubGroup (?P<part>\S+?))?, currently (?P<have>\d+) exist, "
    r"(?P<gated>\d+) are gated"
)


def check_gang(facts: DiagnosisFacts) -> Iterator[TreeStep]:
    """Check whether the pod's gang has all its members, and each of them a node."""
    group, refusal = find_group(facts), find_refusal(facts)
    if refusal and (reasons := _list_reasons_of_pod(facts, refusal)):
        yield TreeStep(QUESTION, "no", [refusal.evidence], (), reasons)
        return
    obstacle = _explain_refusal(facts, group, refusal) if refusal else _explain_silence(facts, group)
    obstacle = _add_judgement(facts, obstacle) if obstacle else _describe_too_large(facts, group)
    if obstacle:
        yield TreeStep(QUESTION, "no", obstacle.evidence, (), [obstacle])
    elif group and group.minimum:
        is_complete = len(group.members) >= group.minimum
        yield TreeStep(QUESTION, to_answer(is_complete or None), [facts.pod.source] if facts.pod else [])


def has_node_reasons(steps: Iterable[TreeStep]) -> bool:
    """Tell whether the text about the gang blames the pod itself: then the step has the reasons of its nodes."""
    blamed = (step for step in steps if step.question == QUESTION)
    return any(not obstacle.code.startswith("Gang") for step in blamed for obstacle in step.obstacles)


def _list_reasons_of_pod(facts: DiagnosisFacts, refusal: Statement) -> list[FoundObstacle]:
    """List the nodes' reasons in a text about the group that blames this pod."""
    for pattern in (_KOORDINATOR_MEMBER, _VOLCANO):
        match = pattern.search(refusal.text)
        if match and match["member"] and match["member"].rpartition("/")[2] == facts.name:
            reasons = iterate_reasons(facts, match["why"] or "")
            return [reason._replace(evidence=[refusal.evidence]) for reason in reasons]
    return []


def _explain_refusal(facts: DiagnosisFacts, group: Group | None, refusal: Statement) -> FoundObstacle | None:
    words, evidence = refusal.text, refusal.evidence
    if match := _VOLCANO.search(words):
        return _explain_volcano(facts, group, match, refusal)
    if _SKIPPED.search(words):
        return _describe_waiting(facts, group, "", "", evidence)
    if match := _KOORDINATOR_MEMBER.search(words):
        member = match["member"].rpartition("/")[2]
        # A member that is to blame itself has the nodes' reasons.
        if member == facts.name:
            return None
        return _describe_waiting(facts, group, member, match["why"] or "", evidence, match["group"])
    if match := _KOORDINATOR_FEW.search(words):
        return _describe_incomplete(facts, group, evidence, name=match["old"] or match["new"])
    if match := _SIBLINGS.search(words):
        return _describe_incomplete(
            facts, group, evidence, have=int(match["have"][:9]), minimum=int(match["minimum"][:9])
        )
    if _NATIVE_FEW.search(words):
        return _describe_incomplete(facts, group, evidence)
    if (match := _SIBLING_FAILED.search(words)) and match["member"].rpartition("/")[2] != facts.name:
        return _describe_waiting(facts, group, match["member"], "", evidence, match["group"])
    if match := _FAILED_RECENTLY.search(words):
        return _describe_waiting(facts, group, "", "", evidence, match["group"])
    if _GATED.search(words):
        return _build("GangGated", facts, group, evidence)
    if match := _HAS_NODE.search(words):
        return _describe_chosen(facts, group, match, evidence)
    if _GAVE_BACK.search(words):
        return _describe_given_back(facts, group, evidence)
    if match := _KAI_PART.search(words):
        return _describe_part(facts, group, match, evidence)
    if (match := _KOORDINATOR_NEW.search(words)) and "gang" in words.lower():
        return _build("GangUnknown", facts, group, evidence, match["group"] or "")
    return None


def _explain_volcano(
    facts: DiagnosisFacts, group: Group | None, match: re.Match[str], refusal: Statement
) -> FoundObstacle | None:
    member, minimum = match["member"] or "", int(match["minimum"][:9])
    if member == facts.name:
        # The text is about this pod: its nodes' reasons are the obstacle.
        return None
    is_read = group is not None and group.object is not None
    members = len(group.members) if group and is_read else int((match["tasks"] or match["minimum"])[:9])
    if not member and not match["why"] and members < minimum:
        return _describe_incomplete(facts, group, refusal.evidence, have=members, minimum=minimum)
    why = match["why"] or ""
    obstacle = _describe_waiting(facts, group, member, why, refusal.evidence)
    if why and not member:
        # A reason of the whole group, such as that of a plugin for devices.
        words = {**obstacle.words, "cause": quote(why)}
        obstacle = obstacle._replace(words=words, clauses=[*obstacle.clauses, "cause"])
    counts = (match["counts"].rstrip(", ") + match["more"]).strip(", ")
    more: dict[str, Word] = {"minimum": minimum, "counts": counts}
    clauses = [name for name in obstacle.clauses if name != "minimum"]
    index = clauses.index("group") + 1 if "group" in clauses else 0
    clauses[index:index] = ["minimum", *(["counts"] if counts else [])]
    return obstacle._replace(words={**obstacle.words, **more}, clauses=clauses)


def _build(code: str, facts: DiagnosisFacts, group: Group | None, evidence: Evidence, name: str = "") -> FoundObstacle:
    """Build an obstacle with the name of the group, and its minimum if it is known."""
    group_name = name.rpartition("/")[2] or (group.name if group else "")
    words: dict[str, Word] = {
        "group": group_name,
        "field": group.field if group else "minMember",
        "minimum": group.minimum if group else 0,
        "namespace": facts.namespace,
        "words": quote(evidence.words),
    }
    clauses = ["group"] if group_name else []
    return FoundObstacle(code, words, evidence=[evidence], clauses=clauses)


def _describe_waiting(
    facts: DiagnosisFacts, group: Group | None, member: str, why: str, evidence: Evidence, name: str = ""
) -> FoundObstacle:
    """Describe a pod that was not judged because another member of its gang fits nowhere."""
    obstacle = _build("GangWaits", facts, group, evidence, name)
    clauses, sources = list(obstacle.clauses), [evidence]
    if group and group.minimum:
        clauses.append("minimum")
    if not why and group and (refused := find_refused_member(facts, group)) and member in ("", refused[0]):
        member, why = refused[0], refused[1].text
        sources.append(refused[1].evidence)
    words: dict[str, Word] = {"member": member, "why": describe_reasons(facts, why)}
    if member:
        clauses.append("reasons" if why else "member")
    return obstacle._replace(words={**obstacle.words, **words}, clauses=clauses, evidence=sources)


def _describe_given_back(facts: DiagnosisFacts, group: Group | None, evidence: Evidence) -> FoundObstacle:
    """Describe a pod that had a node, and gave it back because another member had none."""
    obstacle = _build("GangGaveBack", facts, group, evidence)
    refused = find_refused_member(facts, group) if group else None
    if refused is None:
        return obstacle
    name, statement = refused
    words: dict[str, Word] = {"member": name, "why": describe_reasons(facts, statement.text)}
    clauses = [*obstacle.clauses, "reasons"]
    if group and group.minimum:
        words["have"] = len(group.members)
        clauses.append("members")
    if group and group.topology:
        words["topology"] = group.topology
        clauses.append("topology")
    return obstacle._replace(
        words={**obstacle.words, **words}, clauses=clauses, evidence=[evidence, statement.evidence]
    )


def _describe_chosen(
    facts: DiagnosisFacts, group: Group | None, match: re.Match[str], evidence: Evidence
) -> FoundObstacle:
    """Describe a pod for which Volcano has a node, and which waits until enough members have one."""
    obstacle = _describe_given_back(facts, group, evidence)
    is_held = "resource is released" in match["once"]
    clauses = [*obstacle.clauses, *(["released"] if is_held else [])]
    words: dict[str, Word] = {**obstacle.words, "node": match["node"]}
    return obstacle._replace(code="GangHasNode", words=words, nodes=[match["node"]], clauses=clauses)


def _describe_incomplete(
    facts: DiagnosisFacts,
    group: Group | None,
    evidence: Evidence,
    *,
    name: str = "",
    have: int | None = None,
    minimum: int = 0,
) -> FoundObstacle:
    """Describe a gang of which too few pods exist."""
    obstacle = _build("GangIncomplete", facts, group, evidence, name)
    minimum = minimum or (group.minimum if group else 0)
    if have is None and group and group.members:
        have = len(group.members)
    if have is None or minimum <= have:
        return obstacle
    words: dict[str, Word] = {"have": have, "minimum": minimum, "missing": minimum - have}
    numbers = {"members": have, "members_needed": minimum}
    clauses = [*obstacle.clauses, "counts"]
    maker = find_maker(facts)
    if maker and maker.refusal:
        words |= {"maker": maker.name, "words_of_maker": quote(maker.refusal)}
        clauses.append("refused")
    elif maker and maker.replicas and maker.replicas < minimum:
        words |= {"maker": maker.name, "replicas": maker.replicas}
        clauses.append("makes")
    return obstacle._replace(words={**obstacle.words, **words}, numbers=numbers, clauses=clauses)


def _add_judgement(facts: DiagnosisFacts, obstacle: FoundObstacle) -> FoundObstacle:
    """Add how many members fit the nodes as they are, to what the scheduler says of the gang."""
    if facts.gang is None or obstacle.code not in _JUDGED:
        return obstacle
    words = {**obstacle.words, **_collect_words(facts.gang)}
    return obstacle._replace(words=words, clauses=[*obstacle.clauses, "judged"])


def _collect_words(gang: JudgedGang) -> dict[str, Word]:
    return {"fitting": gang.fitting, "judged": gang.members, "next": gang.member, "causes": _write_part(gang.obstacle)}


def _write_part(obstacle: FoundObstacle) -> InBothLanguages:
    """State an obstacle as a part of another sentence."""
    sentence = write_sentence(obstacle)
    return InBothLanguages(en=sentence.en.rstrip("."), zh=sentence.zh.rstrip("。"))


def _describe_too_large(facts: DiagnosisFacts, group: Group | None) -> FoundObstacle | None:
    """Describe a gang of which some members fit and not all; of one whose first fits nowhere, the nodes' reasons do."""
    gang = facts.gang
    if gang is None or group is None or not gang.fitting:
        return None
    evidence = Evidence("judged", "", facts.now, numbers={"members": gang.members, "fitting": gang.fitting})
    obstacle = _build("GangTooLarge", facts, group, evidence)
    clauses = [*obstacle.clauses, *(["minimum"] if group.minimum else []), "judged"]
    numbers = {"members": gang.members, "fitting": gang.fitting}
    return obstacle._replace(words={**obstacle.words, **_collect_words(gang)}, clauses=clauses, numbers=numbers)


def _describe_part(
    facts: DiagnosisFacts, group: Group | None, match: re.Match[str], evidence: Evidence
) -> FoundObstacle:
    """Describe a gang for some of whose pods KAI has nodes; its text counts the nodes that refuse the next one."""
    obstacle = _build("GangTooLarge", facts, group, evidence)
    words: dict[str, Word] = {name: int(match[name][:9]) for name in ("fitting", "minimum")}
    words["why"] = quote(match["why"])
    return obstacle._replace(words={**obstacle.words, **words}, clauses=[*obstacle.clauses, "counts"])


def _explain_silence(facts: DiagnosisFacts, group: Group | None) -> FoundObstacle | None:
    """Explain a pod on which no scheduler has written: incomplete gangs are not tried, and only their objects tell."""
    if group is None or facts.pod is None or facts.objects is None or facts.pod.node:
        return None
    for statement in iterate_group_statements(facts, group):
        if match := _KAI_NOT_READY.search(statement.text):
            return _describe_not_ready(facts, group, match, statement.evidence)
    if group.minimum > len(group.members) > 0:
        return _describe_incomplete(facts, group, facts.pod.source)
    if group.system == "Kubernetes" and group.object is None and kinds.POD_GROUP not in facts.objects.unread:
        missing = _build("GangGroupMissing", facts, group, facts.pod.source)
        return missing if facts.objects.has_read(kinds.POD_GROUP) else missing._replace(clauses=["group", "unread"])
    return None


def _describe_not_ready(facts: DiagnosisFacts, group: Group, match: re.Match[str], evidence: Evidence) -> FoundObstacle:
    have, minimum, gated = (int(match[name][:9]) for name in ("have", "minimum", "gated"))
    obstacle = _describe_incomplete(facts, group, evidence, have=have, minimum=minimum)
    more: dict[str, Word] = {"gated": gated, "part": match["part"] or ""}
    clauses = [*obstacle.clauses, *(["part"] if match["part"] else []), *(["gated"] if gated else [])]
    code = "GangGated" if gated and have >= minimum else obstacle.code
    return obstacle._replace(
        code=code, words={**obstacle.words, **more}, clauses=clauses if code == obstacle.code else ["group"]
    )
