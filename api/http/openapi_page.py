"""The documentation page: the OpenAPI document as one HTML page without scripts, fonts or anything from elsewhere."""

from collections.abc import Iterator
from html import escape
from typing import Any, Final

Json = dict[str, Any]

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"

_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
code { background: #f3f3f3; padding: .1em .3em; border-radius: 3px; }
h2 { margin-top: 2.5rem; border-top: 1px solid #ddd; padding-top: 1rem; overflow-wrap: anywhere; }
nav { margin: 1.5rem 0; } nav a { display: block; text-decoration: none; }
table { border-collapse: collapse; width: 100%; margin-bottom: 1rem; }
td, th { text-align: left; vertical-align: top; padding: .3rem .6rem; }
td:first-child, th:first-child { width: 11rem; }
tr:nth-child(even) { background: #fafafa; } th { border-bottom: 1px solid #ddd; }
@media (prefers-color-scheme: dark) {
  body { background: #181818; color: #ddd; } code, tr:nth-child(even) { background: #262626; } a { color: #8af; }
}
"""


def documentation(openapi: Json) -> str:
    info = openapi["info"]
    schemas = openapi.get("components", {}).get("schemas", {})
    body = "".join([*_contents(openapi), *_sections(openapi), *_answers(schemas)])
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(info['title'])}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{escape(info['title'])}</h1><p>{_prose(info['description'])}</p>"
        f'<p>The same for programs: <a href="/openapi.json">/openapi.json</a>.</p>{body}</body></html>'
    )


def _operations(openapi: Json) -> Iterator[tuple[str, Json]]:
    """What is asked, as in ``GET /readyz``, with all that is said about it."""
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def _contents(openapi: Json) -> Iterator[str]:
    yield "<nav>"
    for asked, operation in _operations(openapi):
        yield f'<a href="#{escape(operation["operationId"])}"><code>{escape(asked)}</code></a>'
    yield "</nav>"


def _sections(openapi: Json) -> Iterator[str]:
    for asked, operation in _operations(openapi):
        yield f'<h2 id="{escape(operation["operationId"])}"><code>{escape(asked)}</code></h2>'
        yield _paragraphs(operation["description"])
        yield _table(("parameter", "in", "kind", "about"), _parameters(operation))
        yield _table(("status", "answer", "about"), _responses(operation))


def _answers(schemas: Json) -> Iterator[str]:
    """What answers consist of: every kind with its fields."""
    yield '<h2 id="answers">What answers consist of</h2>'
    for name, schema in sorted(schemas.items()):
        yield f'<h3 id="{escape(name)}"><code>{escape(name)}</code></h3>'
        yield _paragraphs(schema.get("description") or "")
        yield _table(("field", "kind", "about"), _fields(schema))


def _fields(schema: Json) -> list[tuple[str, ...]]:
    return [
        (f"<code>{escape(name)}</code>", _kind(field), _prose(field.get("description", "")))
        for name, field in schema.get("properties", {}).items()
    ]


def _parameters(operation: Json) -> list[tuple[str, ...]]:
    return [
        (f"<code>{escape(each['name'])}</code>", each["in"], _given(each["schema"]), _prose(each["description"]))
        for each in operation.get("parameters", [])
    ]


def _responses(operation: Json) -> list[tuple[str, ...]]:
    return [
        (f"<code>{escape(status)}</code>", _answer(response), _prose(response.get("description", "")))
        for status, response in operation["responses"].items()
    ]


def _answer(response: Json) -> str:
    kinds = [_kind(content.get("schema", {})) for content in response.get("content", {}).values()]
    headers = "".join(f"<br>header <code>{escape(name)}</code>" for name in response.get("headers", {}))
    return ", ".join(filter(None, kinds)) + headers


def _given(schema: Json) -> str:
    """Of a parameter: nobody gives null."""
    choices = [each for each in schema.get("anyOf", [schema]) if each.get("type") != "null"]
    return " or ".join(map(_kind, choices))


def _kind(schema: Json) -> str:
    """A schema in a few words."""
    if reference := schema.get("$ref"):
        name = escape(reference.rpartition("/")[2])
        return f'<a href="#{name}"><code>{name}</code></a>'
    if choices := schema.get("anyOf"):
        return " or ".join(map(_kind, choices))
    if values := schema.get("enum"):
        return " ".join(f"<code>{escape(str(value))}</code>" for value in values)
    if "const" in schema:
        return f"<code>{escape(str(schema['const']))}</code>"
    if schema.get("type") == "array":
        return f"list of {_kind(schema['items'])}"
    if isinstance(of := schema.get("additionalProperties"), dict):
        return f"object of {_kind(of)}"
    default = schema.get("default")
    said = "" if default in (None, "") else f", by default {escape(str(default).lower())}"
    return escape(str(schema.get("type", ""))) + said


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{word}</th>" for word in heads)
    lines = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{lines}</table>"


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{_prose(each)}</p>" for each in text.split("\n\n") if each)


def _prose(text: str) -> str:
    """Text with ``code`` between backquotes."""
    parts = escape(text.replace("``", "`")).split("`")
    return "".join(f"<code>{part}</code>" if place % 2 else part for place, part in enumerate(parts))
