"""Names that a search field completes, and those that an unknown name was meant to be, by what a caller may read."""

import pytest

from schemas.answers.nodes import Names
from tests.support.builders.events import OF_A_JOB
from tests.support.fakes.reviews import Grant
from tests.support.harness.api_app import Caller
from tests.support.harness.example_api import build_caller
from tests.support.harness.guarded_api import READS_LLM, Guarded

PATH = "/api/v1/names"
ALL_NODES = Grant("alice", "list", "nodes")


@pytest.fixture
def caller() -> Caller:
    caller = build_caller("1-gpu-pod")
    caller.remember_pods("llm/train-0", "llm/train-1", "ml/train-0", "other/unrelated", description=OF_A_JOB)
    return caller


async def list_texts(caller: Caller, text: str, **headers: str) -> list[str]:
    answer = await caller.client.get(PATH, params={"q": text}, headers=headers)
    assert answer.status_code == 200, answer.text
    return [name.text for name in Names.model_validate_json(answer.content).items]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("llm/train", ["llm/train-0", "llm/train-1"]),
        ("train-0", ["llm/train-0", "ml/train-0"]),
        ("TRAIN-1", ["llm/train-1"]),
        ("node3", ["node3"]),
        ("llm/", ["llm/", "llm/job/train", "llm/train-0", "llm/train-1"]),
        ("job/train", ["llm/job/train", "ml/job/train", "other/job/train"]),
        ("unrel", ["other/unrelated"]),
    ],
)
async def test_names_contain_the_text_and_equal_ones_come_first(caller: Caller, text: str, expected: list[str]) -> None:
    assert await list_texts(caller, text) == expected


async def test_a_text_that_no_name_contains_has_similar_names(caller: Caller) -> None:
    answer = Names.model_validate_json((await caller.get(f"{PATH}?q=llm/trian-0")).content)
    assert answer.are_similar
    assert answer.items[0].text == "llm/train-0"
    nodes = Names.model_validate_json((await caller.get(f"{PATH}?q=nodee3")).content)
    assert "node3" in [item.text for item in nodes.items]


async def test_a_caller_sees_only_names_that_he_may_read() -> None:
    guarded = Guarded()
    guarded.begin()
    guarded.remember_pods("llm/train-0", "secret/train-0")
    alice = guarded.reviews.build_header("alice", READS_LLM, Grant("alice", "list", "pods", "llm"))
    assert await list_texts(guarded, "train", **alice) == ["llm/train-0"]
    assert await list_texts(guarded, "secret", **alice) == []
    assert await list_texts(guarded, "node", **alice) == []


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/namespaces/llm/pods/trian-0/diagnosis", "Did you mean llm/train-0"),
        ("/namespaces/llm/pods/unrelated/schedulerlog", "Did you mean other/unrelated?"),
        ("/namespaces/llm/pods/trian-0/observations", "Did you mean llm/train-0"),
        ("/nodes/nod3", "Did you mean node3"),
    ],
)
async def test_an_unknown_name_is_answered_with_similar_ones(caller: Caller, path: str, name: str) -> None:
    answer = await caller.get(f"/api/v1{path}")
    assert answer.status_code == 404
    assert answer.json()["next"].startswith(name)


async def test_an_unknown_name_shows_none_of_a_namespace_that_the_caller_may_not_read() -> None:
    guarded = Guarded()
    guarded.begin()
    guarded.remember_pods("llm/train-0", "secret/train-9")
    grants = (READS_LLM, Grant("alice", "list", "pods", "llm"))
    alice = guarded.reviews.build_header("alice", *grants)
    answer = await guarded.get("/api/v1/namespaces/llm/pods/train-9/schedulerlog", **alice)
    assert answer.status_code == 404
    assert "Did you mean llm/train-0?" in answer.json()["next"]
    assert "secret" not in answer.text
