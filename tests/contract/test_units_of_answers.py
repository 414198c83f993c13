"""Numbers in the answers of the API are named with their unit: memory in MiB, cores in percent, times in seconds."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ANSWERS: Final = Path("schemas/generated/answers")
UNITS: Final = {
    "memory": ("_mib", "_percent"),
    "cores": ("_percent",),
    "seconds": ("_seconds",),
    "wait": ("_seconds",),
    "waited": ("_seconds",),
    "hours": ("_hours",),
    "p50": ("_seconds",),
    "p90": ("_seconds",),
    "p99": ("_seconds",),
}
"""A word in the name of a field, and how the name then ends."""


def is_number(schema: dict[str, Any]) -> bool:
    return schema.get("type") in ("integer", "number") or any(map(is_number, schema.get("anyOf", ())))


def list_fields() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """List answer, field and schema of every field of every answer."""
    for path in ANSWERS.glob("*.schema.json"):
        document = json.loads(path.read_bytes())
        for answer, schema in {path.name: document, **document.get("$defs", {})}.items():
            for name, field in schema.get("properties", {}).items():
                yield answer, name, field


def test_a_number_that_has_a_unit_is_named_with_it() -> None:
    numbers = {(answer, name) for answer, name, field in list_fields() if is_number(field)}
    assert len(numbers) > 100
    without = [
        f"{answer}.{name}"
        for answer, name in sorted(numbers)
        for word, ends in UNITS.items()
        if word in name.split("_") and not name.endswith(ends)
    ]
    assert without == []


def test_an_object_of_numbers_says_what_they_are() -> None:
    objects = [(answer, name, field) for answer, name, field in list_fields() if is_number(get_value_schema(field))]
    assert len({name for _, name, _ in objects}) > 3
    assert [f"{answer}.{name}" for answer, name, field in objects if not field.get("description")] == []


def get_value_schema(field: dict[str, Any]) -> dict[str, Any]:
    values = field.get("additionalProperties")
    return values if isinstance(values, dict) else {}
