"""Scores and comparisons over HTTP: refused questions, and what is not there."""

import pytest

from schemas.answers.attempts import Error
from tests.support.harness.api_app import Caller
from tests.support.harness.golden_index import attempt

POD = "/api/v1/namespaces/llm/pods/deepseek-5996b8569d-kgwgx"
ATTEMPT = "/api/v1/attempts/" + attempt().attempt_id


@pytest.mark.parametrize(
    ("path", "status", "cause"),
    [
        (POD + "/comparison", 400, "parameter nodes"),
        (POD + "/comparison?nodes=node1", 400, "two different ones"),
        (POD + "/comparison?nodes=node1,node1", 400, "two different ones"),
        (POD + "/comparison?nodes=node1,node2,node3", 400, "3 names"),
        (POD + "/comparison?nodes=node1,node9", 404, "did not judge node node9"),
        (POD + "/scores?node=node1", 400, "'node' is unknown"),
        (ATTEMPT + "/comparison", 400, "parameter with"),
        (ATTEMPT + "/comparison?with=a/b", 400, "parameter with"),
        (ATTEMPT + "/comparison?with=none", 404, "no attempt none"),
        ("/api/v1/namespaces/llm/pods/other/scores", 404, "no scheduling attempt"),
    ],
)
async def test_a_wrong_question_names_its_mistake(path: str, status: int, cause: str) -> None:
    caller = Caller()
    caller.remember(attempt())
    answer = await caller.get(path)
    assert answer.status_code == status, answer.text
    assert cause in Error.model_validate_json(answer.content).error


async def test_nodes_are_compared_in_the_order_of_the_question() -> None:
    caller = Caller()
    caller.remember(attempt())
    body = (await caller.get(POD + "/comparison?nodes=node5&nodes=node3")).json()
    assert [node["node"] for node in body["nodes"]] == ["node5", "node3"]
    assert body["difference"] == {"score": 0.2, "slots": 0.1, "cores": 0, "memory": 0.1}
