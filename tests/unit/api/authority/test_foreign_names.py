"""Names of foreign pods in answers: none leaves, wherever it is and whatever endpoint answers."""

import random
from collections.abc import Callable, Coroutine
from typing import Any, Final

import httpx
import orjson
import pytest
from starlette.requests import Request
from starlette.responses import Response

from api.authority.access import get_access
from api.authority.rights import list_pods
from api.http.endpoints import Endpoint
from api.http.errors import ApiError
from api.http.operation import OperationRoute
from engine.summaries.named_pods import HIDDEN_POD
from tests.support.builders.events import STARTED, a_summary
from tests.support.fakes.reviews import Grant
from tests.support.harness.api_app import POD, answer_nothing, with_needed_query
from tests.support.harness.guarded_api import READS_LLM, Guarded

FOREIGN: Final = ("team-b", "x", "kube-system", "a0-b1-c2", "n0", "u000a", "namespace-of-63-characters-" + 36 * "y")
"""Namespaces, also of letters that escapes of JSON have."""
FORMS: Final = (
    "{0}/{1}", "pod.{0}/{1}", "see https://10.0.0.1/api/v1/namespaces/{0}/pods/{1}/binding", "/registry/pods/{0}/{1}",
    "/registry/batch.volcano.sh/jobs/{0}/{1}", "{0}/{1}/main", '"{0}/{1}"', "line\n{0}/{1}", "\x01{0}/{1}", "\\{0}/{1}",
    "等待{0}/{1}，然后重试", "{1}_{0}(6f1c)", "({0}/{1})", "pod={0}/{1};", "@{0}/{1}", "%{0}/{1}", "Pod/{0}/{1}",
    "_{0}/{1}",
)  # fmt: skip
"""Surroundings of a reference."""
VALUES: Final = {
    "namespace": "llm", "word": "job", "name": "deepseek-a", "node": "n1", "attempt_id": "f00", "cluster": "default"
}  # fmt: skip
READER: Final = tuple(
    Grant("reader", verb, resource, namespace)
    for verb in ("get", "list")
    for resource, namespace in (("pods", "llm"), ("nodes", ""), ("clusters", ""))
)
Answer = Callable[[Endpoint, Request], Coroutine[Any, Any, Response]]


class References:
    """References to foreign pods in random places of answers. ``names`` are those of the pods."""

    def __init__(self, seed: int) -> None:
        self.chance, self.names = random.Random(seed), list[str]()

    def write(self) -> str:
        self.names.append(f"secret-{self.chance.randrange(10**9):09}")
        return self.chance.choice(FORMS).format(self.chance.choice(FOREIGN), self.names[-1])

    def insert(self, value: Any) -> Any:
        match value:
            case str():
                return f"{value} {self.write()}" if self.chance.random() < 0.5 else value
            case dict():
                return {key: self.insert(item) for key, item in value.items()} | {self.write(): 1}
            case list():
                return [*map(self.insert, value), self.write()]
        return value

    def insert_into(self, answer: Answer) -> Answer:
        """Wrap the answers of all endpoints, also those that have nothing to tell here."""

        async def answer_with_references(endpoint: Endpoint, request: Request) -> Response:
            try:
                body = (await answer(endpoint, request)).body
            except ApiError:
                body = b""
            # As the handlers do that have something to tell.
            await get_access(request).check_right(list_pods("llm"))
            is_json = bytes(body[:1]) == b"{"
            inserted = orjson.dumps(self.insert(orjson.loads(body) if is_json else {"text": bytes(body).decode()}))
            return Response(inserted, media_type="application/json")

        return answer_with_references


def list_paths(api: Guarded) -> list[str]:
    routes = [route for route in api.app.routes if isinstance(route, OperationRoute) and "/api/v1/" in route.path]
    templates = [route.path for route in routes if "GET" in (route.methods or ())]
    paths = [with_needed_query(template, template.format(**VALUES)) for template in templates]
    assert len(paths) > 40
    return paths


@pytest.mark.parametrize("seed", range(5))
async def test_no_name_of_a_foreign_pod_leaves_in_any_place_of_any_endpoints_answer(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """N6: redaction is by the set of foreign namespaces, over every text of every answer."""
    references = References(seed)
    monkeypatch.setattr(Endpoint, "answer", references.insert_into(Endpoint.answer))
    api = Guarded(is_over_http=False)
    api.begin()
    api.app.state.latest.namespaces.add(FOREIGN)
    header = api.reviews.build_header("reader", *READER)
    for path in list_paths(api):
        before = len(references.names)
        answer = await api.client.get(path, headers=header)
        assert (answer.status_code, len(references.names) > before) == (200, True), path
        assert not [name for name in references.names if name in answer.text], path
        assert HIDDEN_POD in answer.text
        assert answer.json(), "what is left is JSON"
        assert int(answer.headers["content-length"]) == len(answer.content)


async def test_a_watch_names_no_foreign_pod(api: Guarded) -> None:
    api.app.state.latest.namespaces.add(FOREIGN)
    api.remember(a_summary(ended_at=STARTED, error="evicted.team-b/secret").model_copy(update={"version": 2}))
    header = api.reviews.build_header("reader", *READER)
    answer = await api.client.get(f"{POD}?watch=true&timeoutSeconds=1", headers=header)
    assert answer.status_code == 200
    assert f"evicted.{HIDDEN_POD}" in answer.text
    assert "secret" not in answer.text


@pytest.mark.parametrize("is_first", ["alice", "all"])
async def test_an_answer_with_a_foreign_name_is_not_given_to_another_caller(api: Guarded, is_first: str) -> None:
    """Almost every answer about a pod is cached, also one with a name that only the set of namespaces shows."""
    api.remember(a_summary(ended_at=STARTED, error="evicted.other/secret").model_copy(update={"version": 4}))
    api.app.state.latest.namespaces.add(["other"])
    headers = {
        "alice": api.reviews.build_header("alice", READS_LLM),
        "all": api.reviews.build_header("all", Grant("all", "list", "pods"), Grant("all", "get", "pods")),
    }
    order = sorted(headers, key=lambda name: name != is_first)
    for _ in range(2):
        texts = {name: (await api.client.get(POD, headers=headers[name])).text for name in order}
        assert {name: "secret" in text for name, text in texts.items()} == {"alice": False, "all": True}


async def test_an_answer_that_was_cached_before_the_namespace_was_known_is_searched_again(api: Guarded) -> None:
    api.remember(a_summary(ended_at=STARTED, error="evicted.later/secret").model_copy(update={"version": 5}))
    header = api.reviews.build_header("alice", READS_LLM)
    assert "secret" in (await api.client.get(POD, headers=header)).text
    api.app.state.latest.namespaces.add(["later"])
    assert "secret" not in (await api.client.get(POD, headers=header)).text


async def test_the_namespaces_of_the_index_are_known(api: Guarded) -> None:
    """Memory has the latest attempts only; a text may name a pod that no scheduler has tried."""
    buckets = [{"key": "only-observed", "doc_count": 1}]

    def answer(request: httpx.Request) -> httpx.Response:
        nothing = answer_nothing(request)
        counted = {"aggregations": {"namespaces": {"buckets": buckets}}}
        return httpx.Response(200, json=nothing.json() | counted)

    api.answering = answer
    await api.app.state.namespaces_in_index.read()
    assert "only-observed" in api.app.state.latest.namespaces.names
