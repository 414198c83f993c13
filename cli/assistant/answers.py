"""What a tool returns: a short text, the ids of the records that prove it, and the numbers. Pure."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from mcp.types import CallToolResult, TextContent
from pydantic import BaseModel, Field

from cli.client.problems import Problem
from cli.terminal.safe_text import printable
from schemas.json_types import Json

MAX_ITEMS: Final = 20
"""Length of a list in an answer: an assistant that needs more asks again with a filter."""
_RECORD_FIELDS: Final = ("record", "attempt_id", "evidence_attempt")
_ATTEMPT_PATH: Final = re.compile(r"/attempts/([0-9a-f]+)")
_MAX_EVIDENCE: Final = 20


class ToolAnswer(BaseModel):
    """The structured content of every tool."""

    text: str = Field(description="The answer in a few sentences.")
    evidence: list[str] = Field(description="Ids of the attempts and records that prove it.")
    answer: dict[str, Any] = Field(description="The numbers behind it; lists are cut off, `left_out` counts the rest.")


def result(text: str, answer: Json, *, has_evidence: bool = True) -> CallToolResult:
    """The result of a tool that was answered; without evidence where nothing of it is recorded."""
    evidence = list(dict.fromkeys(_records(answer)))[:_MAX_EVIDENCE] if has_evidence else []
    shown = ToolAnswer(text=_inert(text), evidence=evidence, answer=_inert(brief(answer)))
    proof = f"\nEvidence: {', '.join(evidence)}" if evidence else ""
    content = TextContent(type="text", text=shown.text + _inert(proof))
    return CallToolResult(content=[content], structured_content=shown.model_dump(mode="json"))


def refusal(problem: Problem) -> CallToolResult:
    """The result of a tool that was not answered: the cause and the next step, for the assistant to read."""
    content = TextContent(type="text", text=_inert(f"{type(problem).__name__}: {problem}"))
    return CallToolResult(content=[content], is_error=True)


def brief(answer: Any) -> Any:
    """The answer in English alone, without what is empty, and with at most ``MAX_ITEMS`` of each list."""
    match answer:
        case {"en": str(text), "zh": _}:
            return text
        case dict():
            kept = {name: brief(value) for name, value in answer.items() if value not in (None, "", [], {})}
            left_out = {
                name: len(value) - MAX_ITEMS
                for name, value in answer.items()
                if isinstance(value, list) and len(value) > MAX_ITEMS
            }
            return kept | ({"left_out": left_out} if left_out else {})
        case list():
            return [brief(item) for item in answer[:MAX_ITEMS]]
    return answer


def sentences(*texts: str) -> str:
    """One text of those that are not empty."""
    return "\n".join(text for text in texts if text)


def items(texts: Iterable[str], total: int = 0) -> str:
    """A list of at most ``MAX_ITEMS`` lines."""
    lines = list(texts)
    more = max(total, len(lines)) - MAX_ITEMS
    return "\n".join(f"- {line}" for line in lines[:MAX_ITEMS]) + (f"\n- and {more:,} more" if more > 0 else "")


def _records(answer: Any) -> Iterator[str]:
    """Ids in the order in which the answer names them."""
    match answer:
        case dict():
            for name, value in answer.items():
                if isinstance(value, str) and value and name in _RECORD_FIELDS:
                    yield value
                elif isinstance(value, str) and name == "attempt" and (found := _ATTEMPT_PATH.search(value)):
                    yield found[1]
                else:
                    yield from _records(value)
        case list():
            for item in answer:
                yield from _records(item)


def _inert(answer: Any) -> Any:
    """Without characters that are invisible to a person and readable to a model."""
    match answer:
        case str():
            return printable(answer)
        case dict():
            return {printable(name): _inert(value) for name, value in answer.items()}
        case list():
            return [_inert(item) for item in answer]
    return answer
