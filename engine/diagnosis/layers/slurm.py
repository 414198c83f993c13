"""slurm-bridge: the pod waits for a job of Slurm, which decides. Its reason stands in Slurm only (``squeue``).

slurm-bridge is kube-scheduler with the plugin SlurmBridge. It marks the pod with the number of a job that it submits to
Slurm (a label or an annotation of the domain slinky.slurm.net), and refuses the pod in PreFilter until the job has
nodes. After a node is chosen it turns Slurm's generic resources (GRES) into devices of the node.
"""

import re
from collections.abc import Iterator
from typing import Final

from engine.diagnosis.facts import DiagnosisFacts, PodOnCluster
from engine.diagnosis.layers.chosen_nodes import PLUGIN_FAILED
from engine.diagnosis.layers.statements import Statement, find_bind_failure, strip_counts
from engine.diagnosis.outcome import FoundObstacle, TreeStep, Word
from engine.diagnosis.wording import quote

QUESTION: Final = "SlurmStarted"
_DOMAIN: Final = "slinky.slurm.net"
_JOB: Final = re.compile(r"job-?id$")
_PLUGIN: Final = "SlurmBridge"
_NO_JOB_FITS: Final = re.compile(r"requested node configuration is not available", re.IGNORECASE)
_NO_NODE: Final = re.compile(r"no more external nodes to annotate pods|slurm node matches no Kube nodes")
_ENDED: Final = re.compile(r"job is no longer pending but has no nodes assigned")
_CLAIM: Final = "can't schedule pod with a resource claim"
_COUNTED: Final = re.compile(r"\d+/\d+ nodes are available: \d+ ")
_NO_INDEX: Final = "expression cannot be empty string"
"""Error of the list parser that slurm-bridge reads the indices of a GRES with."""


def check_slurm(facts: DiagnosisFacts) -> Iterator[TreeStep]:
    """Check whether the pod waits for Slurm, or failed with what Slurm gave it."""
    statement, job = find_bind_failure(facts), _find_job(facts.pod)
    if statement is None or not (job or _PLUGIN in statement.text):
        return
    if obstacle := _explain(facts, statement, job):
        yield TreeStep(QUESTION, "no", [statement.evidence], (), [obstacle])


def _find_job(pod: PodOnCluster | None) -> str:
    """Find the number of Slurm's job in the pod's marks."""
    marks = {**pod.annotations, **pod.labels} if pod else {}
    names = (name for name in marks if name.partition("/")[0].endswith(_DOMAIN) and _JOB.search(name))
    return next((marks[name] for name in names), "")


def _explain(facts: DiagnosisFacts, statement: Statement, job: str) -> FoundObstacle | None:
    words: dict[str, Word] = {
        "job": job or "?",
        "words": quote(strip_counts(statement.text)),
        "namespace": facts.namespace,
    }
    clauses = ["job"] if job else []
    if failure := PLUGIN_FAILED.search(statement.text):
        if failure["plugin"] != _PLUGIN:
            return None
        words |= {"phase": failure["phase"], "words": quote(failure["words"])}
        code = "SlurmGivesNoIndex" if _NO_INDEX in failure["words"] else "SlurmBindFailed"
        return FoundObstacle(code, words, evidence=[statement.evidence], clauses=clauses)
    if _CLAIM in statement.text:
        return FoundObstacle("SlurmTakesNoClaims", words, evidence=[statement.evidence], clauses=clauses)
    if _NO_JOB_FITS.search(statement.text):
        return FoundObstacle("SlurmRefuses", words, evidence=[statement.evidence], clauses=clauses)
    if _NO_NODE.search(statement.text):
        return FoundObstacle("SlurmNodeUnknown", words, evidence=[statement.evidence], clauses=clauses)
    if _ENDED.search(statement.text):
        return FoundObstacle("SlurmJobEnded", words, evidence=[statement.evidence])
    # Counts of nodes are refusals of kube-scheduler's own filters, before a job is submitted.
    if _COUNTED.match(statement.text) or not job:
        return None
    return FoundObstacle("SlurmWaits", words, evidence=[statement.evidence])
