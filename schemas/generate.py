"""The contract's documents, written from the models: JSON Schemas, AsyncAPI, the catalogue of reasons.

``list_files`` says what every document holds, ``write`` puts them into the checkout, ``compare_documents`` compares; a
test does the same, so no model changes without its documents.
"""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import orjson
import yaml
from pydantic import BaseModel

from . import asyncapi
from .answers import (
    alerts,
    attempts,
    base,
    capacity,
    comparisons,
    diagnosis,
    nodes,
    placements,
    replays,
    reports,
    simulation,
    suggestions,
    trends,
    waiting,
    workloads,
)
from .events import EVENTS
from .ids import build_schema_id
from .reasons import Reason, Scope, read_catalogue

ROOT: Final = Path(__file__).parent.parent
ANSWERS: Final[tuple[type[BaseModel], ...]] = (
    *alerts.ANSWERS,
    *attempts.ANSWERS,
    *comparisons.ANSWERS,
    *diagnosis.ANSWERS,
    *suggestions.ANSWERS,
    *simulation.ANSWERS,
    *capacity.ANSWERS,
    *replays.ANSWERS,
    *waiting.ANSWERS,
    *base.ANSWERS,
    *trends.ANSWERS,
    *reports.ANSWERS,
    *placements.ANSWERS,
    *nodes.ANSWERS,
    *workloads.ANSWERS,
)

_GENERATED: Final = Path("schemas/generated")
_GOLDEN: Final = ROOT / "tests" / "contract" / "golden"


@dataclass(frozen=True, slots=True)
class _ReasonPage:
    """One page of the catalogue."""

    path: Path
    language: str
    head: str
    scopes: tuple[Scope, ...]


_OF_SCHEDULERS: Final[tuple[Scope, ...]] = ("device", "node", "pod")
_REASON_PAGES: Final = (
    _ReasonPage(
        Path("docs/reasons.md"),
        "en",
        "# Reason codes of pending pods\n\n[中文](reasons.zh.md) · [devices of resource claims](reasons-claims.md)",
        _OF_SCHEDULERS,
    ),
    _ReasonPage(
        Path("docs/reasons.zh.md"),
        "zh",
        "# Pod 等待原因码\n\n[English](reasons.md) · [资源声明的设备](reasons-claims.zh.md)",
        _OF_SCHEDULERS,
    ),
    _ReasonPage(
        Path("docs/reasons-claims.md"),
        "en",
        "# Reason codes of the devices of claims (DRA)\n\n[中文](reasons-claims.zh.md) · [other reasons](reasons.md)",
        ("claim",),
    ),
    _ReasonPage(
        Path("docs/reasons-claims.zh.md"),
        "zh",
        "# 资源声明（DRA）设备的原因码\n\n[English](reasons-claims.md) · [其他原因码](reasons.zh.md)",
        ("claim",),
    ),
)
_SCOPES: Final[Mapping[Scope, Mapping[str, str]]] = {
    "device": {"en": "Devices, counted as `X/Y Code`", "zh": "按设备统计：`X/Y Code`"},
    "claim": {
        "en": "Devices of resource claims, counted as `X/Y Code`",
        "zh": "资源声明的设备，按设备统计：`X/Y Code`",
    },
    "node": {"en": "Nodes", "zh": "针对节点"},
    "pod": {"en": "Attempts", "zh": "针对整次调度"},
}
_CAUSE: Final = {"en": "Likely cause", "zh": "可能原因"}
_REMEDY: Final = {"en": "Remedy", "zh": "处理办法"}


@cache
def list_files() -> Mapping[Path, str]:
    """List every generated document: path in the checkout to content."""
    schemas = {f"{event.TYPE}.schema.json": build_json_schema(event, event.TYPE) for event in EVENTS}
    schemas |= {
        f"answers/{answer.__name__}.schema.json": build_json_schema(answer, f"answers.{answer.__name__}")
        for answer in ANSWERS
    }
    texts = {_GENERATED / name: _to_json(schema) for name, schema in schemas.items()}
    texts[_GENERATED / "asyncapi.yaml"] = write_asyncapi()
    texts |= {page.path: _write_reasons(read_catalogue(), page) for page in _REASON_PAGES}
    return texts


def build_json_schema(model: type[BaseModel], name: str) -> dict[str, Any]:
    """Build the JSON Schema 2020-12 of one model, standing alone.

    Objects allow additional properties: a later version may add a field, and a reader that validates must accept
    it.
    """
    schema: dict[str, Any] = _simplify(model.model_json_schema())
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": build_schema_id(name)}
    return head | {"title": model.__name__} | schema


def _simplify(schema: Any, *, names: bool = False) -> Any:
    """Remove titles that only repeat a field's name, and allow further properties."""
    if isinstance(schema, list):
        return [_simplify(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    fields = {
        key: _simplify(value, names=key in ("properties", "$defs"))
        for key, value in schema.items()
        # ``additionalProperties`` with a schema is the type of a map's values, not a ban, and must be kept. Under
        # ``properties`` and ``$defs`` the keys are names: a field may be called ``title``.
        if names or key not in ("title", "additionalProperties") or (key, type(value)) == ("additionalProperties", dict)
    }
    return fields | {"additionalProperties": True} if "properties" in fields and not names else fields


def _to_json(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n"


def write_asyncapi() -> str:
    """Write the AsyncAPI document as YAML."""
    # The first golden record of a type has everything in it.
    examples = {event.TYPE: orjson.loads((_GOLDEN / event.TYPE / "001.json").read_bytes()) for event in EVENTS}
    # In the order of the source, so that a change of the contract is a small difference in the checked-in file.
    return yaml.safe_dump(asyncapi.build_document(examples), sort_keys=False, allow_unicode=True, width=110)


def _write_reasons(reasons: Mapping[str, Reason], page: _ReasonPage) -> str:
    """Write a page of the catalogue as Markdown, a section for each code."""
    return "\n".join(_write_reason_lines(reasons, page)) + "\n"


def _write_reason_lines(reasons: Mapping[str, Reason], page: _ReasonPage) -> Iterator[str]:
    language = page.language
    yield page.head
    yield "\n<!-- written by `python -m schemas generate` from schemas/reasons.toml -->"
    for scope in page.scopes:
        yield f"\n## {_SCOPES[scope][language]}"
        for code in (code for code, reason in reasons.items() if reason.scope == scope):
            texts = getattr(reasons[code], language)
            yield f"\n### `{code}`\n"
            yield f"{texts.meaning}\n"
            yield f"**{_CAUSE[language]}**: {texts.likely_cause}\n"
            yield f"**{_REMEDY[language]}**: {texts.remedy}"


def write(root: Path = ROOT) -> list[Path]:
    """Write every document, remove generated schemas of models that are gone; return what changed."""
    wanted = list_files()
    stale = [path for path in _present(root) if path not in wanted]
    changed = [path for path, text in wanted.items() if _read_text(root / path) != text]
    for path in changed:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(wanted[path], encoding="utf-8")
    for path in stale:
        (root / path).unlink()
    return changed + stale


def compare_documents(root: Path = ROOT) -> str:
    """Compare the checked-in documents with the models, as a unified diff; empty when they agree."""
    wanted = {**dict.fromkeys(_present(root), ""), **list_files()}
    return "".join(line for path, text in wanted.items() for line in _diff(path, _read_text(root / path), text))


def _diff(path: Path, old: str, new: str) -> Iterator[str]:
    names = f"{path} (checked in)", f"{path} (from the models)"
    return difflib.unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), *names)


def _present(root: Path) -> list[Path]:
    return [path.relative_to(root) for path in sorted((root / _GENERATED).rglob("*")) if path.is_file()]


def _read_text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""
