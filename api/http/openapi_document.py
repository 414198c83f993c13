"""The OpenAPI document, built from the operations, their models and an example of each answer. Pure.

The application serves the document from a file, ``api/openapi.json``; a test compares that with the routes.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import WithDefaultSchema

from api.http.cluster import CLUSTER, ROOT
from api.http.errors import PROBLEM
from api.http.tables import CSV
from api.http.watch_query import WATCHED
from schemas.answers.base import WatchEvent
from schemas.json_types import Json

FILE: Final = Path(__file__).parent.parent / "openapi.json"
TAGS: Final = {
    "pods": "One pod: its latest attempt, why it waits, what would help, and where it ran.",
    "attempts": "Attempts of all pods, as a list and by id.",
    "lists": "Waiting and running pods, findings and refusals.",
    "nodes": "Nodes, now or in the past.",
    "cluster": "The cluster: its schedulers, trends and reports, simulations and suggestions.",
    "process": "This process: health, readiness, metrics.",
}
_TAG_OF: Final = {
    "namespaces": "pods",
    "nodes": "nodes",
    "attempts": "attempts",
    "schedulerlogs": "attempts",
    "findings": "lists",
    "pending": "lists",
    "pods": "lists",
    "refusals": "lists",
}
"""First segment of a path below ``/api/v1`` to its tag; other paths have the tag ``cluster``."""
_OWNERS: Final = {
    "/namespaces/{namespace}/pods/{name}": "/pod",
    "/nodes/{node}": "/node",
    "/namespaces/{namespace}/workloads/{word}/{name}": "/workload",
    "/attempts/{attempt_id}": "/attempt",
}
_SUFFIXES: Final = {CSV: ".csv", "application/yaml": ".yaml", "text/plain": ".text"} | dict.fromkeys(WATCHED, ".watch")
"""Media type to the suffix of its example's name; examples of JSON have the operation's name."""
_LICENSE: Final = {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"}
_HOST: Final = {"default": "localhost", "description": "A node of the cluster, or a name that leads to one."}
_SERVERS: Final = (
    {"url": "/", "description": "Where this document was read."},
    {"url": "https://{host}:31994", "description": "As deploy/ installs it.", "variables": {"host": _HOST}},
)
_SECURITY_SCHEMES: Final = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "Bearer token of Kubernetes: `kubectl create token NAME --audience schedulerlog`.",
    },
    "clientCertificate": {"type": "mutualTLS", "description": "Client certificate: CN is the user, each O a group."},
}
_SECURITY: Final[tuple[Json, ...]] = ({"token": []}, {"clientCertificate": []}, {})
"""Accepted credentials; none if only this machine reaches the API."""
_FOR_EVERYBODY: Final = ("/healthz", "/readyz")
_BOUNDS: Final = {"ge": "minimum", "le": "maximum"}
"""Bounds that pydantic leaves in the schema of a type with its own validator, to their names in JSON Schema."""


DESCRIPTION: Final = (
    "Why was a pod placed where it is, or why is it still pending? Which pods hold which devices, and since when? "
    "Which placements can't be right? The API answers the latest attempts from memory, milliseconds after the "
    "decision, and older ones and all lists from the index, about a second after it. "
    "A path is about the API's default cluster; below `/api/v1/clusters/{cluster}/` the same path is about the cluster "
    "that it names. "
    "Every error is JSON with `error` (the cause) and `next` (what to do). Times are RFC 3339 in UTC."
)
_REFERENCE: Final = "#/components/schemas/{model}"


class Described(NamedTuple):
    """Operation in the document: its path and method, its description, and by name the schemas that it refers to."""

    path: str
    method: str
    description: Json
    schemas: Json


@cache
def read_document() -> bytes:
    """Read the document that the application serves."""
    return FILE.read_bytes()


def derive_operation_id(method: str, path: str, *, is_list: bool, in_cluster: bool = False) -> str:
    """Derive ``getPodSchedulerlog``, ``listFindings`` or ``getNodeOccupancyInCluster`` from a path without prefix."""
    for owner, word in _OWNERS.items():
        path = path.replace(owner, word)
    words = path.replace("/", "-").split("-")
    verb = {"GET": "list" if is_list else "get", "POST": ""}[method]
    name = verb + "".join(word[:1].upper() + word[1:] for word in words)
    return name[:1].lower() + name[1:] + ("InCluster" if in_cluster else "")


def derive_tag(path: str) -> str:
    """Derive the tag of a path with its prefix."""
    for prefix in (CLUSTER, ROOT):
        if path.startswith(prefix + "/"):
            return _TAG_OF.get(path.removeprefix(prefix + "/").partition("/")[0], "cluster")
    return "process"


class WithoutNull(GenerateJsonSchema):
    """Generator of schemas without ``"default": null``: generated clients would take the field as always present."""

    def default_schema(self, schema: WithDefaultSchema) -> JsonSchemaValue:
        generated = super().default_schema(schema)
        return {key: value for key, value in generated.items() if (key, value) != ("default", None)}


def derive_schema(model: Any) -> tuple[Json, Json]:
    """Derive the schema of a model, or of a union or list of models, and by name the schemas that it refers to."""
    schemas, definitions = TypeAdapter.json_schemas(
        [("", "serialization", TypeAdapter(model))], ref_template=_REFERENCE, schema_generator=WithoutNull
    )
    return schemas["", "serialization"], definitions.get("$defs", {})


def build_document(operations: Sequence[Described], examples: Mapping[str, Any]) -> Json:
    """Build the document. ``examples``: an answer of each operation by its id, and errors by their status."""
    paths: dict[str, Json] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method] = _complete_operation(
            operation.path, operation.description, examples
        )
    schemas = {name: schema for operation in operations for name, schema in operation.schemas.items()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "schedulerlog", "description": DESCRIPTION, "version": "1.0", "license": _LICENSE},
        "servers": list(_SERVERS),
        "security": list(_SECURITY),
        "tags": [{"name": name, "description": text} for name, text in TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": dict(sorted((schemas | derive_schema(WatchEvent)[1]).items())),
            "examples": {name: {"value": value} for name, value in examples.items()},
            "securitySchemes": _SECURITY_SCHEMES,
        },
    }


def _complete_operation(path: str, operation: Json, examples: Mapping[str, Any]) -> Json:
    name = operation["operationId"].removesuffix("InCluster")
    responses = {
        status: _complete_response(status, response, name if status == "200" else status, examples)
        for status, response in operation["responses"].items()
    }
    changed: Json = {"tags": [derive_tag(path)], "responses": responses}
    if path in _FOR_EVERYBODY:
        changed["security"] = []
    if parameters := operation.get("parameters"):
        changed["parameters"] = [
            parameter | {"schema": _simplify_schema(parameter["schema"])} for parameter in parameters
        ]
    return operation | changed


def _complete_response(status: str, response: Json, example: str, examples: Mapping[str, Any]) -> Json:
    content: Json = response.get("content", {})
    if status != "200":
        content = {PROBLEM: next(iter(content.values()))}
    content = {
        kind: body | _refer_to_example(example + _SUFFIXES.get(kind, ""), examples) for kind, body in content.items()
    }
    return response | ({"content": content} if content else {})


def _refer_to_example(example: str, examples: Mapping[str, Any]) -> Json:
    return {"examples": {example: {"$ref": f"#/components/examples/{example}"}}} if example in examples else {}


def _simplify_schema(schema: Json) -> Json:
    """Simplify the schema of a parameter: pydantic writes an optional one as "or null", but a query can't hold null."""
    simplified = {_BOUNDS.get(key, key): value for key, value in schema.items() if key not in ("title", "anyOf")}
    choices = [_simplify_schema(choice) for choice in schema.get("anyOf", ()) if choice.get("type") != "null"]
    if len(choices) == 1:
        return choices[0] | simplified
    return simplified | ({"anyOf": choices} if choices else {})
