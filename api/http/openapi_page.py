"""Renders the OpenAPI document as one HTML page, without scripts, fonts or anything else from another server.

The usual pages of OpenAPI documents load their scripts from a CDN, which clusters without Internet access can't reach.
"""

from collections.abc import Iterator
from html import escape
from typing import Final

from api.http.cluster import CLUSTER
from schemas.json_types import Json

CONTENT_SECURITY_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
"""Browsers must load nothing; only the style sheet inside the page applies."""

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


def documentation_page(openapi: Json) -> str:
    """The page as HTML. ``openapi`` is the document; everything from it is escaped."""
    info = openapi["info"]
    schemas = openapi.get("components", {}).get("schemas", {})
    body = "".join([*_contents(openapi), *_operation_sections(openapi), *_schema_sections(schemas)])
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(info['title'])}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{escape(info['title'])}</h1><p>{_inline_html(info['description'])}</p>"
        f'<p>The same for programs: <a href="/openapi.json">/openapi.json</a>. '
        f'The answers as pages: <a href="/ui">/ui</a>.</p>{body}</body></html>'
    )


def _operations(openapi: Json) -> Iterator[tuple[str, Json]]:
    """Title (``GET /readyz``) and OpenAPI object of every operation."""
    for path, methods in openapi["paths"].items():
        # The same operation again, of a named cluster: the page would be twice as long and say nothing new.
        if path.startswith(CLUSTER):
            continue
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def _contents(openapi: Json) -> Iterator[str]:
    yield "<nav>"
    for title, operation in _operations(openapi):
        yield f'<a href="#{escape(operation["operationId"])}"><code>{escape(title)}</code></a>'
    yield "</nav>"


def _operation_sections(openapi: Json) -> Iterator[str]:
    for title, operation in _operations(openapi):
        yield f'<h2 id="{escape(operation["operationId"])}"><code>{escape(title)}</code></h2>'
        yield _html_paragraphs(operation["description"])
        yield _table(("parameter", "in", "type", "description"), _parameters(operation))
        yield _table(("status", "answer", "description"), _responses(operation))


def _schema_sections(schemas: Json) -> Iterator[str]:
    """The schemas of answers, each with its fields."""
    yield '<h2 id="answers">Schemas of the answers</h2>'
    for name, schema in sorted(schemas.items()):
        yield f'<h3 id="{escape(name)}"><code>{escape(name)}</code></h3>'
        yield _html_paragraphs(schema.get("description") or "")
        yield _table(("field", "type", "description"), _fields(schema))


def _fields(schema: Json) -> list[tuple[str, ...]]:
    return [
        (f"<code>{escape(name)}</code>", _type(field), _inline_html(field.get("description", "")))
        for name, field in schema.get("properties", {}).items()
    ]


def _parameters(operation: Json) -> list[tuple[str, ...]]:
    return [
        (
            f"<code>{escape(parameter['name'])}</code>",
            parameter["in"],
            _type(parameter["schema"]),
            _inline_html(parameter["description"]),
        )
        for parameter in operation.get("parameters", [])
    ]


def _responses(operation: Json) -> list[tuple[str, ...]]:
    return [
        (f"<code>{escape(status)}</code>", _answer(response), _inline_html(response.get("description", "")))
        for status, response in operation["responses"].items()
    ]


def _answer(response: Json) -> str:
    types = [_type(content.get("schema", {})) for content in response.get("content", {}).values()]
    headers = "".join(f"<br>header <code>{escape(name)}</code>" for name in response.get("headers", {}))
    return ", ".join(filter(None, types)) + headers


def _type(schema: Json) -> str:
    """A JSON Schema in a few words: ``list of Found``, ``integer, by default 50``."""
    if reference := schema.get("$ref"):
        name = escape(reference.rpartition("/")[2])
        return f'<a href="#{name}"><code>{name}</code></a>'
    if choices := schema.get("anyOf"):
        return " or ".join(map(_type, choices))
    if values := schema.get("enum"):
        return " ".join(f"<code>{escape(str(value))}</code>" for value in values)
    if "const" in schema:
        return f"<code>{escape(str(schema['const']))}</code>"
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    if isinstance(values_schema := schema.get("additionalProperties"), dict):
        return f"object of {_type(values_schema)}"
    default = schema.get("default")
    default_text = "" if default in (None, "") else f", by default {escape(str(default).lower())}"
    return escape(str(schema.get("type", ""))) + default_text


def _table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{column}</th>" for column in columns)
    lines = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{lines}</table>"


def _html_paragraphs(text: str) -> str:
    return "".join(f"<p>{_inline_html(paragraph)}</p>" for paragraph in text.split("\n\n") if paragraph)


def _inline_html(text: str) -> str:
    """Escaped text; what stands between backquotes (one or two) becomes ``<code>``."""
    parts = escape(text.replace("``", "`")).split("`")
    return "".join(f"<code>{part}</code>" if number % 2 else part for number, part in enumerate(parts))
