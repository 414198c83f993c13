"""The answer about one pod: its diagnosis, and the parts that have paths of their own."""

from collections.abc import Sequence

from cli.client.problems import Problem
from cli.client.requests import build_pod_path
from cli.client.transport import NO_QUERY, Query, Transport
from cli.terminal.exit_codes import PLACED, WAITING, to_state_exit_code
from schemas.json_types import Json

PodQuestion = tuple[str, Query]
"""Path and parameters of one part."""


def fetch_pod_answer(transport: Transport, namespace: str, name: str, attempt: str = "") -> Json | Problem:
    """Fetch the diagnosis with what would help, scores and findings; a problem if there is no diagnosis."""
    diagnosis = transport.get(build_pod_path(namespace, name, "diagnosis"), {"attempt": attempt})
    if isinstance(diagnosis, Problem):
        return diagnosis
    parts = list_parts(diagnosis["state"], namespace, name, attempt)
    return join_parts(diagnosis, dict(zip(parts, fetch_all(transport, list(parts.values())), strict=True)))


def list_parts(state: str, namespace: str, name: str, attempt: str) -> dict[str, PodQuestion]:
    """List the questions for the parts next to the diagnosis of a pod in this state, by their names."""
    parts: dict[str, PodQuestion] = {"findings": (build_pod_path(namespace, name, "findings"), NO_QUERY)}
    code = to_state_exit_code(state)
    if code == WAITING:
        parts["suggestions"] = build_pod_path(namespace, name, "suggestions"), {"attempt": attempt}
    elif code == PLACED and not attempt:
        parts["scores"] = build_pod_path(namespace, name, "scores"), NO_QUERY
    return parts


def join_parts(diagnosis: Json, fetched: dict[str, Json | Problem]) -> Json:
    """Join the diagnosis and its parts in one document; a part that is a problem is null."""
    parts = {name: fetched.get(name) for name in ("suggestions", "scores", "findings")}
    named = {name: part if isinstance(part, dict) else None for name, part in parts.items()}
    return {**diagnosis, **named, "findings": named["findings"].get("items", []) if named["findings"] else []}


def fetch_all(transport: Transport, questions: Sequence[PodQuestion]) -> list[Json | Problem]:
    """Fetch the answers at the same time, because kubectl takes a while to start; returns them in order."""
    # With what it imports, 20 ms that `explain` does without.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor() as pool:
        return list(pool.map(lambda question: transport.get(*question), questions))
