"""Texts of the diagnosis in both languages, from ``texts.toml``, and the form of numbers in them."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from engine.diagnosis.facts import Unknown
from engine.diagnosis.outcome import FoundObstacle, Word
from engine.hami.annotations import GPU_COUNT
from schemas.answers.diagnosis import Actor, InBothLanguages
from schemas.reasons import Language, explain, read_catalogue

Kind = Literal["gate", "amount", "repair", "count", "constraint", "registration", "last"]
"""Kinds of obstacles, the most important first, as ``engine.diagnosis.tree`` chooses."""

CORDON_TAINT: Final = "node.kubernetes.io/unschedulable"
CONDITION_TAINTS: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
"""Beginnings of the keys of taints that Kubernetes sets for as long as a condition of the node holds."""
_CONTROL_PLANE_TAINTS: Final = frozenset(("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"))
"""Keys of the taint with which kubeadm and its like keep ordinary pods from nodes of the control plane."""
_NOT_READY_TAINTS: Final = frozenset(("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"))
_SICK: Final = re.compile(
    r"node\(s\) (?:had |were )(?P<condition>(?:disk|memory|pid) pressure|out of disk space|unavailable network|"
    r"network unavailable)"
)
"""Reason of kube-scheduler 1.10 to 1.12 for a condition of a node, which later versions write as a taint."""
CONTROL_PLANE_TAINT: Final = "ControlPlaneTaint"
NAMED_TAINTS: Final = ("TaintNotTolerated", CONTROL_PLANE_TAINT, "NodeConditionTaint")
"""Obstacles whose sentences name the taints, those that a person set first."""
_NAMED_TAINT: Final = re.compile(r"\{(?P<key>[^:\s}]+)")

CLAIMS_NOT_ALLOCATED: Final = "DevicesNotAllocatable"
"""Obstacle of "cannot allocate all claims", which is kube-scheduler's reason for whatever devices of claims lack."""
GPU_MEMORY_OF_KAI: Final = "GPU memory"
"""Resource under which KAI counts nodes whose devices are smaller than the share that a pod asks for."""
_KAI_RESOURCES: Final[Mapping[str, str]] = {"GPUs": GPU_COUNT, "CPU cores": "cpu"}
OTHER_WORDS: Final = "RefusedInOtherWords"
"""Obstacle of a reason that no entry of the words begins."""
_SOURCE: Final = Path(__file__).with_name("texts.toml")
_LANGUAGES: Final[tuple[Language, Language]] = ("en", "zh")
_STOP: Final = {"en": ".", "zh": "。"}


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Phrase(_Entry):
    en: str
    zh: str


class ObstacleTexts(_Entry):
    """``likely_cause`` and ``remedy`` of a reason code are in the catalogue of reasons."""

    sentence: str
    likely_cause: str = ""
    remedy: str = ""


class ObstacleEntry(_Entry):
    kind: Kind
    who: tuple[Actor, ...]
    en: ObstacleTexts
    zh: ObstacleTexts
    clauses: dict[str, Phrase] = Field(default_factory=dict)


class DiagnosisTexts(_Entry):
    states: dict[str, Phrase]
    phrases: dict[str, Phrase]
    questions: dict[str, Phrase]
    unknown: dict[str, Phrase]
    subjects: dict[str, Phrase]
    obstacles: dict[str, ObstacleEntry]
    words: dict[str, str]
    """Obstacle of each beginning of a scheduler's reason."""
    errors: dict[str, str]
    """Obstacle of each beginning of an error that ends an attempt."""


@cache
def load_texts() -> DiagnosisTexts:
    return TypeAdapter(DiagnosisTexts).validate_python(tomllib.loads(_SOURCE.read_text(encoding="utf-8")))


class _Number(int):
    """Number in a text: ``{n}`` is written with commas; ``{n:node|nodes}`` is ``node`` if n is 1."""

    def __format__(self, words: str) -> str:
        singular, is_choice, plural = words.partition("|")
        if not is_choice:
            return f"{int(self):,}"
        return singular if self == 1 else plural


class _InLanguage(dict[str, object]):
    """Words of a sentence; a word that is itself a phrase is written in the sentence's language."""

    def __init__(self, words: Mapping[str, Word], language: Language) -> None:
        super().__init__({name: _to_language(word, language) for name, word in words.items()})


def _to_language(word: Word, language: Language) -> object:
    if isinstance(word, InBothLanguages):
        return getattr(word, language)
    return _Number(word) if isinstance(word, int) else word


_UNKNOWN: Final = "?"
"""Name of what nobody has named."""
_UNKNOWN_NAMES: Final[Mapping[Language, tuple[tuple[re.Pattern[str], str], ...]]] = {
    "en": (
        (re.compile(r"describe node \?"), "describe node <node>"),
        (re.compile(r"\bnode \?(?!\w)|(?<=\bon )\?(?!\w)|(?<=\bof )\?(?!\w)"), "its node"),
        (re.compile(r"\bClusterQueue \?(?!\w)"), "its ClusterQueue"),
        (re.compile(r" \(queue \?\)"), ""),
    ),
    "zh": (
        (re.compile(r"describe node \?"), "describe node <node>"),
        (re.compile(r"节点 \?|(?<=[向在查对] )\?|(?<= )\?(?= ?上)"), "其所在节点"),
        (re.compile(r"ClusterQueue \?"), "其 ClusterQueue"),
        (re.compile(r"（队列 \?）"), ""),
    ),
}
"""Words for names that nobody has given, which stand as a question mark."""


def _name_unknown(text: str, language: Language) -> str:
    for pattern, instead in _UNKNOWN_NAMES[language] if "?" in text else ():
        text = pattern.sub(instead, text)
    return text


def write_phrase(name: str, **words: Word) -> InBothLanguages:
    """Write a part of a sentence."""
    return _fill(load_texts().phrases[name], words)


def write_question(name: str) -> InBothLanguages:
    return _fill(load_texts().questions[name], {})


def write_state_sentence(state: str, words: Mapping[str, Word]) -> InBothLanguages:
    return _fill(load_texts().states[state], words, is_sentence=True)


def write_unknown(unknown: Unknown) -> InBothLanguages:
    subject = _fill(load_texts().subjects[unknown.subject], {})
    return _fill(load_texts().unknown[unknown.cause], {"subject": subject})


def _fill(template: Phrase, words: Mapping[str, Word], *, is_sentence: bool = False) -> InBothLanguages:
    en, zh = (
        _name_unknown(getattr(template, language).format_map(_InLanguage(words, language)), language)
        for language in _LANGUAGES
    )
    return InBothLanguages(en=en + "." * is_sentence, zh=zh + "。" * is_sentence)


def write_sentence(obstacle: FoundObstacle) -> InBothLanguages:
    """Write what is wrong, with its numbers."""
    entry = load_texts().obstacles[obstacle.code]
    parts = {}
    for language in _LANGUAGES:
        templates = [
            getattr(entry, language).sentence,
            *(getattr(_find_clause(entry, clause), language) for clause in obstacle.clauses),
        ]
        words = _InLanguage(obstacle.words, language)
        text = _name_unknown("".join(template.format_map(words) for template in templates), language) + _STOP[language]
        # A name that begins a sentence keeps its small letter.
        parts[language] = f"The {text[4:]}" if text.startswith("the ") else text
    return InBothLanguages(**parts)


def _find_clause(entry: ObstacleEntry, clause: str) -> Phrase:
    """Find the clause: the obstacle's own, else one that many obstacles share."""
    return entry.clauses.get(clause) or load_texts().phrases[clause]


def write_likely_cause(obstacle: FoundObstacle) -> InBothLanguages:
    return _explain(obstacle, "likely_cause")


def write_remedy(obstacle: FoundObstacle, namespace: str, pod: str) -> InBothLanguages:
    """Write the remedy, with commands about this pod, and about the node if there is only one."""
    names = {"<namespace>": namespace, "<pod>": pod}
    if len(obstacle.nodes) == 1 and obstacle.nodes[0] != _UNKNOWN:
        names["<node>"] = obstacle.nodes[0]
    text = _explain(obstacle, "remedy")
    return InBothLanguages(en=_fill_names(text.en, names), zh=_fill_names(text.zh, names))


def write_meaning(code: str) -> InBothLanguages:
    """Write the meaning of a reason code of the catalogue."""
    reason = read_catalogue()[code]
    return InBothLanguages(en=reason.en.meaning, zh=reason.zh.meaning)


def write_catalogue_remedy(code: str, names: Mapping[str, str]) -> InBothLanguages:
    """Write the remedy of a reason code of the catalogue, with names in its commands."""
    reason = read_catalogue()[code]
    return InBothLanguages(en=_fill_names(reason.en.remedy, names), zh=_fill_names(reason.zh.remedy, names))


def describe_code(code: str, language: Language) -> tuple[str, str]:
    """Describe meaning and remedy of a code without a pod; a text that names parts of the pod's case is empty."""
    entry = load_texts().obstacles.get(code)
    if code in read_catalogue() or entry is None:
        explained = explain(code, language)
        return explained.meaning, explained.remedy
    texts: ObstacleTexts = getattr(entry, language)
    return "" if "{" in texts.likely_cause else texts.likely_cause, "" if "{" in texts.remedy else texts.remedy


def _fill_names(text: str, names: Mapping[str, str]) -> str:
    for placeholder, name in names.items():
        text = text.replace(placeholder, name)
    return text


def _explain(obstacle: FoundObstacle, field: str) -> InBothLanguages:
    entry, reason = load_texts().obstacles[obstacle.code], read_catalogue().get(obstacle.code)
    parts = {}
    for language in _LANGUAGES:
        own_text = getattr(getattr(entry, language), field).format_map(_InLanguage(obstacle.words, language))
        own_text = _name_unknown(own_text, language)
        # The catalogue's texts have no placeholders, only braces of jsonpath.
        parts[language] = own_text or (getattr(getattr(reason, language), field) if reason else "")
    return InBothLanguages(**parts)


def list_actors(obstacle: FoundObstacle) -> list[Actor]:
    return list(load_texts().obstacles[obstacle.code].who)


def find_actors(code: str) -> list[Actor]:
    """Return who can act on a reason code; empty for a code that is no obstacle of its own."""
    entry = load_texts().obstacles.get(code)
    return list(entry.who) if entry else []


def get_kind(code: str) -> Kind:
    return load_texts().obstacles[code].kind


# Attempts of a scheduler have the same few reasons.
@lru_cache(maxsize=256)
def find_obstacle_of_reason(reason: str) -> tuple[str, str]:
    """Find the obstacle of a scheduler's reason for nodes, and the details after it: a taint, a resource."""
    if sick := _SICK.match(reason):
        return "NodeConditionTaint", sick["condition"]
    code, details = _match_beginning(reason, load_texts().words, OTHER_WORDS)
    if code != "InsufficientResource":
        return code, details
    # Imported late: few reasons are about a resource, and the table of vendors takes its time.
    from engine.hami.vendor_catalog import is_counted_by_extender

    # kube-scheduler counts only what nodes offer, and no node offers what HAMi's extender counts.
    return "ResourceOfExtender" if is_counted_by_extender(details) else code, details


def get_counted_code(code: str) -> str:
    """Return the obstacle under which kube-scheduler counts the nodes of another one: all of claims are one to it."""
    reason = read_catalogue().get(code)
    return CLAIMS_NOT_ALLOCATED if reason and reason.scope == "claim" else code


def get_counted_resource(name: str) -> str:
    """Return the resource of kube-scheduler's filters that a scheduler counts by another name."""
    return _KAI_RESOURCES.get(name, name)


def find_obstacle_of_taint(key: str) -> str:
    """Find the obstacle of a taint.

    Kubernetes itself sets those of cordoned and of sick nodes, the cluster's installer that of the control plane.
    """
    if key == CORDON_TAINT:
        return "NodeCordoned"
    if key in _NOT_READY_TAINTS:
        return "NodeNotReady"
    if key in _CONTROL_PLANE_TAINTS:
        return CONTROL_PLANE_TAINT
    return "NodeConditionTaint" if key.startswith(CONDITION_TAINTS) else "TaintNotTolerated"


def find_taint_obstacle(code: str, details: str) -> str:
    """Choose the obstacle of the taint that kube-scheduler names, up to 1.33 and as Go prints it: {key: value}."""
    taint = _NAMED_TAINT.match(details) if code == "TaintNotTolerated" else None
    return find_obstacle_of_taint(taint["key"]) if taint else code


def find_obstacle_of_error(error: str) -> str:
    """Find the obstacle of an error that ended an attempt."""
    return _match_beginning(error, load_texts().errors, "FilterError")[0]


def _match_beginning(text: str, table: Mapping[str, str], otherwise: str) -> tuple[str, str]:
    # A reason code is the name of its obstacle.
    if text in read_catalogue():
        return text, ""
    begin = next((begin for begin in table if text.startswith(begin)), None)
    if begin is None:
        return otherwise, text
    # Up to 1.21 kube-scheduler ends a sentence behind the taint.
    return table[begin], text.removeprefix(begin).removesuffix(", that the pod didn't tolerate").strip(" .:")
