"""One scheduling session: applies its messages, one by one, to its devices and its attempts."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from ingest.readers.kai.attempt import DeviceChange, Eviction, KaiAttempt, NodeOfAttempt
from ingest.readers.kai.devices import SharedDeviceStates, cut_evidence, parse_device
from ingest.readers.kai.fit_errors import describe_shortage, parse_fit_error
from ingest.readers.kai.grammar import Gpus, ParsedMessage, parse_gpus

MAX_ATTEMPTS: Final = 20_000
"""Pods of one session; pods beyond that are counted as ``overflow`` and get no events."""
_MAX_FIT_MESSAGES: Final = 20_000


@dataclass(slots=True)
class Session:
    name: str
    last_line_at: datetime
    devices: SharedDeviceStates = field(default_factory=SharedDeviceStates)
    attempts: dict[str, KaiAttempt] = field(default_factory=dict)
    """By pod."""
    evictions: dict[str, Eviction] = field(default_factory=dict)
    """By pod: running pods whose eviction KAI simulates or has committed."""
    node_count: int = 0
    job_requested: Gpus | None = None
    full_fit_error: str = ""
    """A fit error in its detailed form; it names no pod, the fit message that follows does."""
    fit_messages: dict[str, list[str]] = field(default_factory=dict)
    """Fit errors by the pod's name alone; the line about the pod's condition, which follows, has its namespace."""
    node_pool: str = ""
    """The pool that the scheduler serves, where a line names it."""
    overflow: int = 0
    """Lines about pods beyond ``MAX_ATTEMPTS``."""

    def find_or_open(self, pod: str, time: datetime) -> KaiAttempt | None:
        """Find the pod's attempt, or begin one; None if that is not possible."""
        attempt_of_pod = self.attempts.get(pod)
        if attempt_of_pod is None:
            if len(self.attempts) >= MAX_ATTEMPTS or not _is_pod(pod):
                self.overflow += 1
                return None
            attempt_of_pod = self.attempts[pod] = KaiAttempt(pod, self.name, time, time)
        elif time > attempt_of_pod.last_line_at:
            attempt_of_pod.last_line_at = time
        return attempt_of_pod

    def find_or_add_node(self, attempt: KaiAttempt, name: str) -> NodeOfAttempt:
        """Find or add the node in the attempt's walk, with its devices when KAI first looked at it."""
        judged = attempt.nodes.get(name)
        if judged is None:
            devices, count = self.devices.take_snapshot(name)
            judged = attempt.nodes[name] = NodeOfAttempt(devices=devices, device_count=count)
        return judged

    def apply(self, message: ParsedMessage) -> bool:
        """Add what the message says to the session; False where it is about a pod that can't be added."""
        pattern, time = message.pattern, message.time
        if time > self.last_line_at:
            self.last_line_at = time
        about_a_pod = _ABOUT_A_POD.get(pattern.kind)
        if about_a_pod is None:
            _ABOUT_THE_SESSION[pattern.kind](self, message)
            return True
        pod = message.parts["pod"]
        # KAI tries to place an evicted pod elsewhere, in simulations: a running pod waits for no node.
        if pod in self.evictions or (attempt := self.find_or_open(pod, time)) is None:
            return False
        attempt.levels.add(pattern.level)
        about_a_pod(self, attempt, message)
        return True


def _is_pod(pod: str) -> bool:
    namespace, slash, name = pod.partition("/")
    return bool(namespace and slash and name) and len(pod) <= 512


def _read_node_state(session: Session, message: ParsedMessage) -> None:
    session.devices.read_node(message)


def _read_device_state(session: Session, message: ParsedMessage) -> None:
    device = session.devices.read_device(message)
    pod = message.parts["pod"]
    attempt = None if pod in session.evictions else session.attempts.get(pod)
    if device is None or attempt is None or message.parts["moment"] != "About to add":
        return
    node, group = device
    now = parse_device(message, session.devices.get_node(node).total_mib)
    attempt.taken[group] = now
    judged = attempt.nodes.get(node)
    before = judged.devices.get(group) if judged else None
    if before and before.differs(now):
        lines = [line for line in (before.line, cut_evidence(message.text)) if line]
        attempt.changes.append(DeviceChange(node, group, before, now, message.time, lines))


def _begin_session(session: Session, message: ParsedMessage) -> None:
    session.node_count = int(message.parts["nodes"][:9])


def _begin_job(session: Session, message: ParsedMessage) -> None:
    session.job_requested = parse_gpus(message.parts["requested"])


def _keep_full_fit_error(session: Session, message: ParsedMessage) -> None:
    session.full_fit_error = message.parts["text"]


def _keep_fit_message(session: Session, message: ParsedMessage) -> None:
    # Bounded: at level 6 a message per pod, which the condition that follows takes away again.
    if len(session.fit_messages) < _MAX_FIT_MESSAGES:
        texts = [text for text in (message.parts["text"], session.full_fit_error) if text]
        session.fit_messages[message.parts["name"]] = texts
    session.full_fit_error = ""


def _set_node_pool(session: Session, message: ParsedMessage) -> None:
    session.node_pool = message.parts["pool"]


def _fail_pre_predicate(session: Session, message: ParsedMessage) -> None:
    """Fail the pod that the line names without its namespace; a fit error that follows gives the reason."""
    name = message.parts["name"].rpartition("/")[2]
    matches = [attempt for attempt in session.attempts.values() if attempt.pod.partition("/")[2] == name]
    if len(matches) == 1 and matches[0].fit_error is None:
        matches[0].levels.add(message.pattern.level)
        matches[0].fit_error = parse_fit_error(message.text)


def _ignore_job_fit_error(_session: Session, _message: ParsedMessage) -> None:
    """Ignore the line: it names only the first pod of the job, and each pod has its own message before it."""


def _begin_pod(session: Session, attempt: KaiAttempt, message: ParsedMessage) -> None:
    # KAI looks for a node again in each simulation; only the first walk shows the real cluster.
    attempt.begin_walk()
    attempt.requested = parse_gpus(message.parts["requested"]) or attempt.requested
    attempt.job_requested = attempt.job_requested or session.job_requested
    if not attempt.is_committed:
        # A choice of a simulation was rolled back; one that was committed stands whatever is simulated later.
        attempt.chosen, attempt.groups, attempt.is_pipelined = "", [], False
        attempt.taken.clear()


def _refuse_gpus(session: Session, attempt: KaiAttempt, message: ParsedMessage) -> None:
    session.find_or_add_node(attempt, message.parts["node"]).is_gpu_refused = True


def _refuse_node(session: Session, attempt: KaiAttempt, message: ParsedMessage) -> None:
    name, requested, idle, releasing = message.parts.group("node", "requested", "idle", "releasing")
    node = session.find_or_add_node(attempt, name)
    node.is_refused = True
    # A predicate's own reason, if there was one, says more.
    node.reason = node.reason or describe_shortage(requested, idle, releasing)
    node.detail = node.detail or f"asked {requested}, idle {idle}, releasing {releasing}"


def _refuse_by_predicate(session: Session, attempt: KaiAttempt, message: ParsedMessage) -> None:
    node = session.find_or_add_node(attempt, message.parts["node"])
    node.is_refused = True
    node.reason = message.parts["text"].strip() or "Predicates failed"


def _set_score(session: Session, attempt: KaiAttempt, message: ParsedMessage) -> None:
    node, score = message.parts.group("node", "score")
    session.find_or_add_node(attempt, node).score = float(score)


def _accept_device(session: Session, attempt: KaiAttempt, message: ParsedMessage) -> None:
    name, group = message.parts.group("node", "group")
    node = session.find_or_add_node(attempt, name)
    # gpupack and gpuspread print the same line: the first one is enough.
    if group in node.devices and group not in node.fitting:
        node.fitting.append(group)


def _take_node(session: Session, attempt: KaiAttempt, message: ParsedMessage) -> None:
    session.find_or_add_node(attempt, message.parts["node"]).is_taken = True
    # The line about an allocation names no devices; those about the devices came before it.
    attempt.chosen, attempt.groups = message.parts["node"], message.get_part("groups").split() or list(attempt.taken)
    attempt.taking_line = cut_evidence(message.text)


def _allocate(session: Session, attempt: KaiAttempt, message: ParsedMessage) -> None:
    _take_node(session, attempt, message)
    attempt.is_pipelined = False


def _set_pipelined(session: Session, attempt: KaiAttempt, message: ParsedMessage) -> None:
    _take_node(session, attempt, message)
    attempt.is_pipelined = True


def _commit_pipeline(_session: Session, attempt: KaiAttempt, _message: ParsedMessage) -> None:
    # Until this line the statement may still be rolled back.
    attempt.is_committed = attempt.is_pipelined = True


def _commit_allocation(_session: Session, attempt: KaiAttempt, _message: ParsedMessage) -> None:
    attempt.is_committed, attempt.is_pipelined = True, False


def _evict(session: Session, message: ParsedMessage) -> None:
    if eviction := _find_or_add_eviction(session, message):
        eviction.node = message.parts["node"]


def _explain_eviction(session: Session, message: ParsedMessage) -> None:
    # The first words count the queues as they are; those of later simulations count what has been simulated.
    if (eviction := _find_or_add_eviction(session, message)) and not eviction.reason:
        eviction.reason = cut_evidence(message.parts["text"].rstrip("> \n"))


def _commit_eviction(session: Session, message: ParsedMessage) -> None:
    if eviction := _find_or_add_eviction(session, message):
        eviction.committed_at = eviction.committed_at or message.time


def _request_eviction(session: Session, message: ParsedMessage) -> None:
    _explain_eviction(session, message)
    _commit_eviction(session, message)


def _find_or_add_eviction(session: Session, message: ParsedMessage) -> Eviction | None:
    pod = message.parts["pod"]
    if (eviction := session.evictions.get(pod)) or len(session.evictions) >= MAX_ATTEMPTS or not _is_pod(pod):
        return eviction
    attempt = session.attempts.get(pod)
    if attempt and not attempt.is_concluded:
        # Levels below 6 print scores of simulated nodes, but no eviction before its commit.
        del session.attempts[pod]
    eviction = session.evictions[pod] = Eviction()
    return eviction


def _set_memory(session: Session, attempt: KaiAttempt, message: ParsedMessage) -> None:
    if memory := int(message.parts["memory"][:12]):
        attempt.memory_mib = memory
    if not attempt.chosen:
        _set_pipelined(session, attempt, message)


def _request_bind(session: Session, attempt: KaiAttempt, message: ParsedMessage) -> None:
    _take_node(session, attempt, message)
    # The event Scheduled comes with this line: KAI emits it before the binder has bound the pod.
    attempt.is_committed, attempt.is_pipelined = True, False


def _fail_bind(_session: Session, attempt: KaiAttempt, message: ParsedMessage) -> None:
    attempt.bind_error = message.parts["text"].strip().rstrip(">") or "the bind failed"
    attempt.bind_failed_at = message.time
    attempt.chosen = attempt.chosen or message.get_part("node")


def _read_condition(session: Session, attempt: KaiAttempt, _message: ParsedMessage) -> None:
    for text in session.fit_messages.pop(attempt.pod.partition("/")[2], ()):
        attempt.add_fit_error(parse_fit_error(text))
    for node, why in (attempt.fit_error.nodes if attempt.fit_error else {}).items():
        # The text of a fit error is the only line with the total memory of a node's devices.
        if why.memory_total_mib is not None:
            session.devices.set_total(node, why.memory_total_mib)
        attempt.memory_mib = attempt.memory_mib or why.memory_requested_mib


_ABOUT_THE_SESSION: Final[dict[str, Callable[[Session, ParsedMessage], None]]] = {
    "node state": _read_node_state,
    "device state": _read_device_state,
    "session": _begin_session,
    "job begins": _begin_job,
    "fit error in full": _keep_full_fit_error,
    "fit error": _keep_fit_message,
    "job fit error": _ignore_job_fit_error,
    "node pool": _set_node_pool,
    "pre-predicate failed": _fail_pre_predicate,
    "evicted": _evict,
    "eviction reason": _explain_eviction,
    "eviction committed": _commit_eviction,
    "eviction requested": _request_eviction,
}
_ABOUT_A_POD: Final[dict[str, Callable[[Session, KaiAttempt, ParsedMessage], None]]] = {
    "pod begins": _begin_pod,
    "gpu refused": _refuse_gpus,
    "node refused": _refuse_node,
    "predicate refused": _refuse_by_predicate,
    "score": _set_score,
    "device fits": _accept_device,
    "allocated": _allocate,
    "pipelined": _set_pipelined,
    "pipeline committed": _commit_pipeline,
    "allocation committed": _commit_allocation,
    "memory requested": _set_memory,
    "bind requested": _request_bind,
    "bind failed": _fail_bind,
    "condition": _read_condition,
}
