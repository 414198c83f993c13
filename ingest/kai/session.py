"""One scheduling session: the state of its cards, and its attempts, sentence by sentence."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from ingest.kai.attempt import Attempt, Card, Change, JudgedNode, evidence
from ingest.kai.cards import CardStates, numbers
from ingest.kai.fit_errors import fit_error
from ingest.kai.grammar import Gpus, Sentence, gpus_of

MAX_ATTEMPTS: Final = 20_000
"""Of one session; the pods beyond are counted and not told."""
_MAX_MESSAGES: Final = 20_000


@dataclass(slots=True)
class Session:
    name: str
    last: datetime
    cards: CardStates = field(default_factory=CardStates)
    attempts: dict[str, Attempt] = field(default_factory=dict)
    """By pod."""
    node_count: int = 0
    job_asked: Gpus | None = None
    in_full: str = ""
    """A fit error that was written in full: the next message is about the same pod."""
    messages: dict[str, list[str]] = field(default_factory=dict)
    """Fit errors by the pod's name; the line behind them says its namespace."""
    overflow: int = 0
    """Pods that there was no room for."""

    def attempt(self, pod: str, time: datetime) -> Attempt | None:
        """The pod's attempt, begun where there is none; None where it can't be."""
        known = self.attempts.get(pod)
        if known is None:
            if len(self.attempts) >= MAX_ATTEMPTS or not _is_pod(pod):
                self.overflow += 1
                return None
            known = self.attempts[pod] = Attempt(pod, self.name, time, time)
        elif time > known.last:
            known.last = time
        return known

    def node(self, attempt: Attempt, name: str) -> JudgedNode:
        """The node in the attempt's walk; its cards are what they are when it is first looked at."""
        judged = attempt.nodes.get(name)
        if judged is None:
            cards, count = self.cards.snapshot_of(name)
            judged = attempt.nodes[name] = JudgedNode(cards=cards, card_count=count)
        return judged

    def take(self, said: Sentence) -> bool:
        """Did the sentence add to what is known?"""
        line, time = said.line, said.time
        if time > self.last:
            self.last = time
        about_a_pod = _ABOUT_A_POD.get(line.kind)
        if about_a_pod is None:
            _ABOUT_ALL[line.kind](self, said)
            return True
        if (attempt := self.attempt(said.parts["pod"], time)) is None:
            return False
        attempt.levels.add(line.level)
        about_a_pod(self, attempt, said)
        return True


def _is_pod(pod: str) -> bool:
    namespace, slash, name = pod.partition("/")
    return bool(namespace and slash and name) and len(pod) <= 512


def _node_state(session: Session, said: Sentence) -> None:
    session.cards.see_node(said)


def _card_state(session: Session, said: Sentence) -> None:
    seen = session.cards.see_card(said)
    attempt = session.attempts.get(said.parts["pod"])
    if seen is None or attempt is None or said.parts["moment"] != "About to add":
        return
    node, group, _ = seen
    now = numbers(said, session.cards.of(node).total_mib)
    attempt.taken[group] = now
    judged = attempt.nodes.get(node)
    before = judged.cards.get(group) if judged else None
    if before and _differ(before, now):
        lines = [line for line in (before.line, evidence(said.text)) if line]
        attempt.changes.append(Change(node, group, before, now, said.time, lines))


def _differ(before: Card, after: Card) -> bool:
    pairs = (before.allocated_mib, after.allocated_mib), (before.releasing_mib, after.releasing_mib)
    return any(old is not None and new is not None and old != new for old, new in pairs)


def _session_begins(session: Session, said: Sentence) -> None:
    session.node_count = int(said.parts["nodes"][:9])


def _job_begins(session: Session, said: Sentence) -> None:
    session.job_asked = gpus_of(said.parts["asked"])


def _in_full(session: Session, said: Sentence) -> None:
    session.in_full = said.parts["text"]


def _fit_message(session: Session, said: Sentence) -> None:
    if len(session.messages) < _MAX_MESSAGES:
        session.messages[said.parts["name"]] = [text for text in (said.parts["text"], session.in_full) if text]
    session.in_full = ""


def _job_fit(_session: Session, _said: Sentence) -> None:
    """It names no pod but the first of its job; each pod's own message stands before it."""


def _pod_begins(session: Session, attempt: Attempt, said: Sentence) -> None:
    attempt.begin_walk()
    attempt.asked = gpus_of(said.parts["asked"]) or attempt.asked
    attempt.job_asked = attempt.job_asked or session.job_asked
    if not attempt.is_committed:
        attempt.chosen, attempt.groups, attempt.is_pipelined = "", [], False


def _gpu_refused(session: Session, attempt: Attempt, said: Sentence) -> None:
    session.node(attempt, said.parts["node"]).is_gpu_refused = True


def _node_refused(session: Session, attempt: Attempt, said: Sentence) -> None:
    name, asked, idle, releasing = said.parts.group("node", "asked", "idle", "releasing")
    node = session.node(attempt, name)
    node.is_refused = True
    node.reason = node.reason or "Not enough resources"
    node.detail = node.detail or f"asked {asked}, idle {idle}, releasing {releasing}"


def _predicate_refused(session: Session, attempt: Attempt, said: Sentence) -> None:
    node = session.node(attempt, said.parts["node"])
    node.is_refused = True
    node.reason = said.parts["text"].strip() or "Predicates failed"


def _score(session: Session, attempt: Attempt, said: Sentence) -> None:
    node, score = said.parts.group("node", "score")
    session.node(attempt, node).score = float(score)


def _card_fits(session: Session, attempt: Attempt, said: Sentence) -> None:
    name, group = said.parts.group("node", "group")
    node = session.node(attempt, name)
    if group in node.cards and group not in node.fitting:
        node.fitting.append(group)


def _taken(session: Session, attempt: Attempt, said: Sentence) -> None:
    session.node(attempt, said.parts["node"]).is_taken = True
    attempt.chosen, attempt.groups = said.parts["node"], said.named("groups").split()
    attempt.taking_line = evidence(said.text)


def _allocated(session: Session, attempt: Attempt, said: Sentence) -> None:
    _taken(session, attempt, said)
    attempt.is_pipelined = False


def _pipelined(session: Session, attempt: Attempt, said: Sentence) -> None:
    _taken(session, attempt, said)
    attempt.is_pipelined = True


def _pipeline_committed(_session: Session, attempt: Attempt, _said: Sentence) -> None:
    attempt.is_committed = attempt.is_pipelined = True


def _memory_asked(session: Session, attempt: Attempt, said: Sentence) -> None:
    if memory := int(said.parts["memory"][:12]):
        attempt.memory_mib = memory
    if not attempt.chosen:
        _pipelined(session, attempt, said)


def _bind_requested(session: Session, attempt: Attempt, said: Sentence) -> None:
    _taken(session, attempt, said)
    attempt.is_committed, attempt.is_pipelined = True, False


def _bind_failed(_session: Session, attempt: Attempt, said: Sentence) -> None:
    attempt.bind_error = said.parts["text"].strip().rstrip(">") or "the bind failed"
    attempt.bind_failed_at = said.time
    attempt.chosen = attempt.chosen or said.named("node")


def _condition(session: Session, attempt: Attempt, _said: Sentence) -> None:
    for text in session.messages.pop(attempt.pod.partition("/")[2], ()):
        attempt.learn_fit(fit_error(text))
    for node, why in (attempt.fit.nodes if attempt.fit else {}).items():
        if why.memory_total_mib is not None:
            session.cards.learn_total(node, why.memory_total_mib)
        attempt.memory_mib = attempt.memory_mib or why.memory_asked_mib


_ABOUT_ALL: Final[dict[str, Callable[[Session, Sentence], None]]] = {
    "node state": _node_state,
    "card state": _card_state,
    "session": _session_begins,
    "job begins": _job_begins,
    "fit error in full": _in_full,
    "fit error": _fit_message,
    "job fit error": _job_fit,
}
_ABOUT_A_POD: Final[dict[str, Callable[[Session, Attempt, Sentence], None]]] = {
    "pod begins": _pod_begins,
    "gpu refused": _gpu_refused,
    "node refused": _node_refused,
    "predicate refused": _predicate_refused,
    "score": _score,
    "card fits": _card_fits,
    "allocated": _allocated,
    "pipelined": _pipelined,
    "pipeline committed": _pipeline_committed,
    "memory asked": _memory_asked,
    "bind requested": _bind_requested,
    "bind failed": _bind_failed,
    "condition": _condition,
}
