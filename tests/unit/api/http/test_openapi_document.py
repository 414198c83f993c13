"""The OpenAPI document is equal to the routes and valid, its examples are answers, and its parameters are fuzzed."""

import asyncio
import re
from collections.abc import Iterator
from functools import cache
from typing import Any
from urllib.parse import quote

import httpx
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from api.http.openapi_document import FILE, TAGS
from schemas.answers.attempts import Error
from tests.support.harness.api_app import Caller
from tests.support.harness.api_document import write_document
from tests.support.harness.golden_index import answer_search, read_attempt
from tests.support.stress import count_examples

DOCUMENT: dict[str, Any] = orjson.loads(FILE.read_bytes())
OPERATIONS: dict[str, tuple[str, str, dict[str, Any]]] = {
    operation["operationId"]: (method.upper(), path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}
OF_ONE_CLUSTER = [name for name in OPERATIONS if not name.endswith("InCluster")]
PATH_VALUES = {
    "namespace": "llm",
    "name": "deepseek-5996b8569d-kgwgx",
    "word": "job",
    "node": "node3",
    "attempt_id": read_attempt().attempt_id,
}
"""Path parameters under which something is recorded."""
NASTY = ("", "-1", "9" * 30, "\x00", "é", "x" * 5_000, "a,b", "'\"<>&=", "9999-12-31T23:59:59Z")


@cache
def get_caller() -> Caller:
    """Return one caller for all requests: none of them changes what it remembers."""
    caller = Caller(answer_search)
    caller.remember(read_attempt())
    caller.publish()
    return caller


def iterate_parameters(operation: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from operation.get("parameters", [])


def test_the_file_is_what_the_routes_and_the_golden_records_give() -> None:
    assert FILE.read_bytes() == write_document(), "run python -m tests.support.harness.api_document"


def test_it_is_a_valid_document_of_openapi_3_1() -> None:
    # Schemas and paths of named clusters, which repeat the others, take most of the time.
    paths = {path: methods for path, methods in DOCUMENT["paths"].items() if "{cluster}" not in path}
    validate(DOCUMENT | {"paths": paths})
    assert DOCUMENT["openapi"].startswith("3.1")


def test_operations_are_named_as_programs_name_methods_and_have_declared_tags() -> None:
    assert {"getPodSchedulerlog", "listSchedulerlogs", "getPodSchedulerlogInCluster"} <= OPERATIONS.keys()
    assert [name for name in OPERATIONS if not re.fullmatch(r"[a-z]+[A-Za-z]*", name)] == []
    assert [tag["name"] for tag in DOCUMENT["tags"]] == list(TAGS)
    assert all(len(operation["tags"]) == 1 for _, _, operation in OPERATIONS.values())
    assert {operation["tags"][0] for _, _, operation in OPERATIONS.values()} <= TAGS.keys()


def test_it_names_its_license_its_servers_and_how_callers_prove_who_they_are() -> None:
    assert DOCUMENT["info"]["license"]["name"] == "Apache-2.0"
    assert [server["url"] for server in DOCUMENT["servers"]] == ["/", "https://{host}:31994"]
    schemes = DOCUMENT["components"]["securitySchemes"]
    assert {name: item["type"] for name, item in schemes.items()} == {"token": "http", "clientCertificate": "mutualTLS"}
    assert {name for requirement in DOCUMENT["security"] for name in requirement} == schemes.keys()
    assert {path for _, path, spec in OPERATIONS.values() if spec.get("security") == []} == {"/healthz", "/readyz"}


def test_no_parameter_may_be_null_and_ranges_of_time_have_one_pair_of_names() -> None:
    for name, (_, _, operation) in OPERATIONS.items():
        for parameter in iterate_parameters(operation):
            assert "null" not in str(parameter["schema"]), (name, parameter)
            assert parameter["name"] not in ("from", "to", "start", "end", "before", "after"), name
            assert parameter["description"], (name, parameter)


@pytest.mark.parametrize("name", OF_ONE_CLUSTER)
def test_each_answer_of_each_media_type_has_an_example_of_its_schema(name: str) -> None:
    for status, response in OPERATIONS[name][2]["responses"].items():
        for kind, content in response.get("content", {}).items():
            assert content.get("examples"), f"{status}, {kind}: add a request to tests/support/harness/api_document.py"
            reference = next(iter(content["examples"].values()))["$ref"]
            example = DOCUMENT["components"]["examples"][reference.rpartition("/")[2]]["value"]
            Draft202012Validator(DOCUMENT | content["schema"]).validate(example)


async def send(method: str, path: str, query: dict[str, str], body: bytes = b"") -> None:
    """Send the request: it is answered, or refused with a cause and a next step."""
    try:
        answer = await get_caller().client.request(method, path, params=query, content=body)
    except httpx.InvalidURL:
        return
    # Workloads and plans are answered from objects, which nothing connects to here.
    down = {503} if any(part in path for part in ("/workloads/", "/drain", "/defragmentation", "/purchase")) else set()
    assert answer.status_code in {200, 400, 404, 410, 413, 415} | down, (path, query, answer.text)
    if answer.status_code != 200:
        error = Error.model_validate_json(answer.content)
        assert error.error == error.detail
        assert error.next
        assert error.code
        assert error.status == answer.status_code
        assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("name", OF_ONE_CLUSTER)
async def test_each_parameter_refuses_what_it_cant_take_with_a_cause_and_a_next_step(name: str) -> None:
    method, path, operation = OPERATIONS[name]
    await send(method, path.format(**PATH_VALUES), {})
    for parameter in iterate_parameters(operation):
        for value in NASTY:
            if parameter["in"] == "path":
                await send(method, path.format(**PATH_VALUES | {parameter["name"]: quote(value[:300])}), {})
            else:
                await send(method, path.format(**PATH_VALUES), {parameter["name"]: value})


def build_values(schema: dict[str, Any]) -> st.SearchStrategy[str]:
    """Build values that the parameter may take, and some that it may not."""
    samples = [*schema.get("enum", []), schema.get("const", "full"), *schema.get("examples", []), "1", "2h", *NASTY]
    return st.one_of(st.sampled_from(samples).map(str), st.text(max_size=30), st.integers().map(str))


@settings(max_examples=count_examples(20))
@given(st.data())
def test_parameters_together_are_answered_or_refused_and_never_fail(data: st.DataObject) -> None:
    method, path, operation = OPERATIONS[data.draw(st.sampled_from(OF_ONE_CLUSTER))]
    of_query = [parameter for parameter in iterate_parameters(operation) if parameter["in"] == "query"]
    chosen = data.draw(st.lists(st.sampled_from(of_query), unique_by=lambda param: param["name"])) if of_query else []
    query = {parameter["name"]: data.draw(build_values(parameter["schema"])) for parameter in chosen}
    asyncio.run(send(method, path.format(**PATH_VALUES), query, data.draw(st.binary(max_size=50))))
