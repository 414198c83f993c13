"""The OpenAPI document as one HTML page, without scripts, fonts or anything else from another server; and its routes.

The usual pages of OpenAPI documents load their scripts from a CDN, which clusters without Internet access can't reach.
"""

from collections.abc import Iterator
from html import escape
from typing import Final

import orjson
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from api.http.cluster import CLUSTER
from api.http.openapi_document import read_document
from schemas.json_types import Json

CONTENT_SECURITY_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
"""Policy of the page: browsers load nothing and apply only the style sheet inside the page."""

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


def list_document_routes() -> list[Route]:
    """List the routes of the document and of its page."""
    return [
        Route("/docs", _answer_page),
        Route("/", _answer_page),
        Route("/openapi.json", _answer_document),
    ]


async def _answer_document(_: Request) -> Response:
    return Response(read_document(), media_type="application/json")


async def _answer_page(_: Request) -> Response:
    page = render_page(orjson.loads(read_document()))
    return HTMLResponse(page, headers={"Content-Security-Policy": CONTENT_SECURITY_POLICY})


def render_page(openapi: Json) -> str:
    """Render the page as HTML. ``openapi`` is the document; everything from it is escaped."""
    info = openapi["info"]
    schemas = openapi.get("components", {}).get("schemas", {})
    body = "".join([*_render_contents(openapi), *_render_operations(openapi), *_render_schemas(schemas)])
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(info['title'])}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{escape(info['title'])}</h1><p>{_render_inline(info['description'])}</p>"
        f'<p>For programs: <a href="/openapi.json">/openapi.json</a>. '
        f'Answers as pages: <a href="/ui">/ui</a>.</p>{body}</body></html>'
    )


def _iterate_operations(openapi: Json) -> Iterator[tuple[str, Json]]:
    """Iterate over the operations: title (``GET /readyz``) and OpenAPI object."""
    for path, methods in openapi["paths"].items():
        # Operations of a named cluster are the same ones again: with them the page would be twice as long.
        if path.startswith(CLUSTER):
            continue
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def _render_contents(openapi: Json) -> Iterator[str]:
    yield "<nav>"
    for title, operation in _iterate_operations(openapi):
        yield f'<a href="#{escape(operation["operationId"])}"><code>{escape(title)}</code></a>'
    yield "</nav>"


def _render_operations(openapi: Json) -> Iterator[str]:
    for title, operation in _iterate_operations(openapi):
        yield f'<h2 id="{escape(operation["operationId"])}"><code>{escape(title)}</code></h2>'
        yield _render_paragraphs(operation["description"])
        yield _render_table(("parameter", "in", "type", "description"), _list_parameters(operation))
        yield _render_table(("status", "answer", "description"), _list_responses(operation))


def _render_schemas(schemas: Json) -> Iterator[str]:
    """Render the schemas of answers, each with its fields."""
    yield '<h2 id="answers">Schemas of the answers</h2>'
    for name, schema in sorted(schemas.items()):
        yield f'<h3 id="{escape(name)}"><code>{escape(name)}</code></h3>'
        yield _render_paragraphs(schema.get("description") or "")
        yield _render_table(("field", "type", "description"), _list_fields(schema))


def _list_fields(schema: Json) -> list[tuple[str, ...]]:
    return [
        (f"<code>{escape(name)}</code>", _describe_type(field), _render_inline(field.get("description", "")))
        for name, field in schema.get("properties", {}).items()
    ]


def _list_parameters(operation: Json) -> list[tuple[str, ...]]:
    return [
        (
            f"<code>{escape(parameter['name'])}</code>",
            parameter["in"],
            _describe_type(parameter["schema"]),
            _render_inline(parameter["description"]),
        )
        for parameter in operation.get("parameters", [])
    ]


def _list_responses(operation: Json) -> list[tuple[str, ...]]:
    return [
        (f"<code>{escape(status)}</code>", _describe_answer(response), _render_inline(response.get("description", "")))
        for status, response in operation["responses"].items()
    ]


def _describe_answer(response: Json) -> str:
    types = [_describe_type(content.get("schema", {})) for content in response.get("content", {}).values()]
    headers = "".join(f"<br>header <code>{escape(name)}</code>" for name in response.get("headers", {}))
    return ", ".join(filter(None, types)) + headers


def _describe_type(schema: Json) -> str:
    """Describe a JSON Schema in a few words: ``list of Finding``, ``integer, by default 50``."""
    if reference := schema.get("$ref"):
        name = escape(reference.rpartition("/")[2])
        return f'<a href="#{name}"><code>{name}</code></a>'
    if choices := schema.get("anyOf"):
        return " or ".join(map(_describe_type, choices))
    if values := schema.get("enum"):
        return " ".join(f"<code>{escape(str(value))}</code>" for value in values)
    if "const" in schema:
        return f"<code>{escape(str(schema['const']))}</code>"
    if schema.get("type") == "array":
        return f"list of {_describe_type(schema['items'])}"
    if isinstance(values_schema := schema.get("additionalProperties"), dict):
        return f"object of {_describe_type(values_schema)}"
    default = schema.get("default")
    default_text = "" if default in (None, "") else f", by default {escape(str(default).lower())}"
    return escape(str(schema.get("type", ""))) + default_text


def _render_table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{column}</th>" for column in columns)
    lines = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{lines}</table>"


def _render_paragraphs(text: str) -> str:
    return "".join(f"<p>{_render_inline(paragraph)}</p>" for paragraph in text.split("\n\n") if paragraph)


def _render_inline(text: str) -> str:
    """Escape the text, and turn what stands between backquotes (one or two) into ``<code>``."""
    parts = escape(text.replace("``", "`")).split("`")
    return "".join(f"<code>{part}</code>" if number % 2 else part for number, part in enumerate(parts))
