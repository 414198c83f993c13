"""Answers about the workloads of files and of a live cluster, with the attempts that its schedulers wrote of. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches

from engine.cases import workload_answers
from engine.cases.unmade_answers import build_unmade_facts
from engine.cases.workload_words import WORDS, parse_word
from engine.cases.workloads import CaseWorkload
from engine.diagnosis.facts import DiagnosisFacts
from engine.snapshot.case_objects import CaseObjects
from ingest.cases.answers import MAX_SIMILAR_NAMES, diagnose_pods
from ingest.cases.read_case import UNDATED, ClusterCase
from runtime.kubernetes.object_fields import Fields
from schemas.answers.diagnosis import Diagnosis
from schemas.answers.workloads import WorkloadDiagnosis
from schemas.events import AttemptSummarized


@dataclass(frozen=True, slots=True)
class _DiagnosedCase:
    """The case with the answers about its pods."""

    case: ClusterCase

    @property
    def objects(self) -> CaseObjects:
        return self.case.objects

    @property
    def now(self) -> datetime:
        return self.case.ended_at or UNDATED

    def diagnose(self, names: Sequence[str]) -> list[Diagnosis]:
        return [answer.diagnosis for answer in diagnose_pods(self.case, names)]

    def build_unmade_facts(self, key: CaseWorkload, pod: Fields | None) -> DiagnosisFacts:
        return build_unmade_facts(self.objects, self.now, key, pod)

    def collect_attempts(self, names: Iterable[str]) -> dict[str, AttemptSummarized]:
        pods = self.case.pods.pods
        return {name: pods[name].find_latest()[0] for name in names if name in pods}


def diagnose_workload(case: ClusterCase, key: CaseWorkload) -> WorkloadDiagnosis:
    """Diagnose a workload that the case has."""
    return workload_answers.diagnose_workload(_DiagnosedCase(case), key)


def explain_missing_workload(source: str, objects: CaseObjects, word: str, name: str) -> str:
    """Explain that a workload is not in the files; names those with the most similar names."""
    if not parse_word(word):
        return f"{word} is not a kind of workload: write one of {', '.join(WORDS)}, or a pod"
    names = {entry: key for kind in parse_word(word) for key in objects.tables.get(kind, {}) for entry in (key[1],)}
    if not names:
        return f"{source} has no {word}: `kubectl get {word} -A -o yaml` writes them, and their pods are read too"
    similar = get_close_matches(name, names, MAX_SIMILAR_NAMES, cutoff=0.5) or list(names)[:MAX_SIMILAR_NAMES]
    listed = ", ".join(f"{names[entry][0]}/{word}/{entry}" for entry in similar)
    return f"{source} has no {word} {name}; it has {len(names):,}, such as {listed}"
