"""The files of the chart's values: ``values.yaml`` with the purpose of each, and their JSON Schema."""

import json
import textwrap
from collections.abc import Iterator
from typing import Any, Final

import yaml

from deploy.helm_from_kustomize.value_types import ChartSection
from deploy.helm_from_kustomize.values import Values

WIDTH: Final = 110


def write_schema() -> str:
    """Write values.schema.json."""
    schema = _name_keys(Values.model_json_schema(by_alias=True))
    # Helm hands charts that are part of others these two.
    schema["properties"] |= {"global": {"type": "object"}, "enabled": {"type": "boolean"}}
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema"} | schema, indent=1) + "\n"


def _name_keys(schema: Any) -> Any:
    """Name the keys of a map one by one: Helm then names the wrong one, and not all that are right."""
    if isinstance(schema, list):
        return [_name_keys(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    named = {key: _name_keys(part) for key, part in schema.items()}
    if "enum" in named.get("propertyNames", ()):
        names = named.pop("propertyNames")["enum"]
        named |= {"properties": dict.fromkeys(names, named["additionalProperties"]), "additionalProperties": False}
    return named


def write_defaults() -> str:
    """Write values.yaml, with the purpose of each value above it."""
    head = (
        "# Made by `make generate` from deploy/helm_from_kustomize/values.py, which describes and checks each value.\n"
    )
    return head + "\n".join(_write_section(Values(), "")) + "\n"


def _write_section(section: ChartSection, indent: str) -> Iterator[str]:
    for name, field in type(section).model_fields.items():
        value, key = getattr(section, name), field.alias or name
        if not indent:
            yield ""
        width = WIDTH - len(indent)
        yield from (f"{indent}# {line}" for line in textwrap.wrap(" ".join((field.description or "").split()), width))
        if isinstance(value, ChartSection):
            yield f"{indent}{key}:"
            yield from _write_section(value, f"{indent}  ")
        else:
            yield f"{indent}{key}: {_write_value(value)}"


def _write_value(value: Any) -> str:
    return yaml.safe_dump([value], default_flow_style=True, width=1 << 30).strip()[1:-1]
