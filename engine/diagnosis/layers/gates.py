"""Scheduling gates: Kueue's, with the Workload behind them, and those of other controllers.

No scheduler looks at a pod that has a gate. The domain of the gate's name says which controller takes it away.
"""

from typing import Final

from engine.diagnosis.facts import DiagnosisFacts, Evidence, PodOnCluster
from engine.diagnosis.layers.kueue import explain_workload
from engine.diagnosis.layers.kueue_workloads import QUEUE_LABEL, Workload, find_workload, is_gate
from engine.diagnosis.outcome import FoundObstacle, TreeStep, Word
from engine.diagnosis.texts import write_phrase
from engine.diagnosis.wording import shorten_list, to_condition_evidence, to_existence_evidence

QUESTION: Final = "FreeOfGates"
_GATED: Final = "SchedulingGated"


def check_gates(facts: DiagnosisFacts) -> TreeStep:
    """Check whether the pod has scheduling gates, and what their controllers wait for."""
    pod = facts.pod
    condition = pod.find_condition("PodScheduled") if pod else None
    gates = pod.gates if pod else None
    if pod and (gates or (condition and condition.reason == _GATED)):
        evidence = [to_condition_evidence(pod, condition)] if condition else [pod.source]
        return TreeStep(QUESTION, "no", evidence, (), _explain_gates(facts, pod, gates or (), evidence), is_end=True)
    if pod and (gates is not None or condition):
        return TreeStep(QUESTION, "yes", [pod.source])
    # A scheduler ignores pods with a gate, so a judged pod has none.
    if facts.attempt:
        return TreeStep(QUESTION, "yes", [to_existence_evidence(facts.attempt)])
    return TreeStep(QUESTION, "not known", (), facts.select_unknown("pod"))


def _explain_gates(
    facts: DiagnosisFacts, pod: PodOnCluster, gates: tuple[str, ...], evidence: list[Evidence]
) -> list[FoundObstacle]:
    """Explain the gates of each controller: while Kueue holds the pod, another one's gate comes second."""
    workload = find_workload(facts)
    of_kueue = [gate for gate in gates if is_gate(gate)]
    others = [gate for gate in gates if not is_gate(gate)]
    obstacles = []
    if of_kueue and workload is not None:
        obstacles.append(explain_workload(facts, workload, of_kueue))
    elif of_kueue:
        obstacles.append(_describe_unread(facts, pod, of_kueue, evidence))
    if others or not gates:
        obstacles.append(_describe_gates(facts, others, evidence, workload))
    return obstacles


def _describe_unread(
    facts: DiagnosisFacts, pod: PodOnCluster, gates: list[str], evidence: list[Evidence]
) -> FoundObstacle:
    """Describe a gate of Kueue whose Workload was not read."""
    queue = pod.labels.get(QUEUE_LABEL, "")
    words: dict[str, Word] = {"gates": shorten_list(gates), "namespace": facts.namespace, "queue": queue}
    return FoundObstacle("KueueHolds", words, evidence=evidence, clauses=["queue"] if queue else [])


def _describe_gates(
    facts: DiagnosisFacts, gates: list[str], evidence: list[Evidence], workload: Workload | None
) -> FoundObstacle:
    # An observation has only the condition, which names no gate.
    names = shorten_list(gates) if gates else _GATED
    domains = sorted({gate.partition("/")[0] for gate in gates if "/" in gate})
    words: dict[str, Word] = {
        "count": max(len(gates), 1),
        "gates": names,
        "namespace": facts.namespace,
        "owner": write_phrase("gate_owner", domains=shorten_list(domains))
        if domains
        else write_phrase("gate_owner_unnamed"),
    }
    clauses = []
    if workload is not None and workload.is_admitted:
        words["queue"] = workload.cluster_queue or "?"
        clauses.append("admitted")
    return FoundObstacle("SchedulingGated", words, evidence=evidence, clauses=clauses)
