"""Rows of ``explain``, a pod each: its diagnosis, and in detail what helps, its scores and findings."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from schemas.json_types import Json

if TYPE_CHECKING:
    from ingest.cases.answers import PodAnswer
    from ingest.cases.read_case import ClusterCase

MAX_DETAILED: Final = 200
"""Pods of a page with their nodes and what helps them: each takes a search of changes."""
PARTS: Final = ("suggestions", "scores", "findings")
"""Parts of an answer next to the diagnosis; they have paths of their own in the API."""


def build_rows(case: "ClusterCase", names: Sequence[str], *, has_details: bool) -> list[Json]:
    """Build a row for each pod, with nodes, time line and the parts next to its diagnosis where they are asked for."""
    from ingest.cases.answers import diagnose_pods, explain_pod

    if not has_details:
        return [_write_row(answer) for answer in diagnose_pods(case, names)]
    detailed = [_write_detailed(explain_pod(case, name)) for name in names[:MAX_DETAILED]]
    return [*detailed, *(_write_row(answer) for answer in diagnose_pods(case, names[MAX_DETAILED:]))]


def _write_row(answer: "PodAnswer") -> Json:
    from schemas.codec.records import format_rfc3339

    return {
        "attempts": answer.attempts,
        "node": answer.node,
        "started_at": format_rfc3339(answer.started_at) if answer.started_at else None,
        "diagnosis": answer.diagnosis.model_dump(mode="json"),
    }


def _write_detailed(answer: "PodAnswer") -> Json:
    return _write_row(answer) | {
        "suggestions": answer.suggestions.model_dump(mode="json") if answer.suggestions else None,
        "scores": answer.scores.model_dump(mode="json") if answer.scores else None,
        "findings": list(answer.findings),
    }


def write_pod(row: Json) -> Json:
    """Write the document about one pod: the API's diagnosis with the parts that have paths of their own there."""
    return {**row["diagnosis"], **{name: row[name] for name in PARTS}}


def suggest(case: "ClusterCase", diagnosis: Json) -> Json | None:
    """Suggest what would let a waiting pod in, as far as the objects of its cluster were read."""
    from ingest.cases.answers import suggest_for
    from schemas.answers.diagnosis import Diagnosis

    suggestions = suggest_for(case, Diagnosis.model_validate(diagnosis))
    return suggestions.model_dump(mode="json") if suggestions else None
