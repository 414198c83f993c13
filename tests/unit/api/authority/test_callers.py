"""Callers of requests: bearer tokens, and headers that are none."""

import pytest

from runtime.kubernetes.errors import KubeApiError
from schemas.answers.attempts import Error
from tests.support.fakes.reviews import ACCESS_REVIEW, TOKEN_REVIEW, Grant
from tests.support.harness.api_app import POD
from tests.support.harness.guarded_api import OTHER, READS_LLM, Guarded


async def test_without_a_token_nothing_is_asked(api: Guarded) -> None:
    answer = await api.get(POD)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert "deepseek" not in answer.text
    Error.model_validate_json(answer.content)
    assert api.reviews.specs == []
    assert api.searches == []


@pytest.mark.parametrize(
    "headers",
    [
        [("Authorization", "Basic YWxpY2U6eA==")],
        [("Authorization", "Bearer")],
        [("Authorization", "Bearer ")],
        [("Authorization", "bearer  x y")],
        [("Authorization", "Bearer token-of-alice"), ("Authorization", "Bearer token-of-alice")],
        [("Cookie", "access_token=token-of-alice")],
        [("X-Forwarded-Access-Token", "token-of-alice")],
    ],
)
async def test_what_is_no_bearer_token_does_not_reach_the_api_server(
    api: Guarded, headers: list[tuple[str, str]]
) -> None:
    api.reviews.build_header("alice", READS_LLM)
    for path in (POD, POD + "?access_token=token-of-alice"):
        assert (await api.client.get(path, headers=headers)).status_code == 401
    assert api.reviews.specs == []


async def test_a_token_that_is_too_long_is_refused_by_its_length(api: Guarded) -> None:
    assert await api.get_status(POD, {"Authorization": "Bearer " + "a" * 100_000}) == 431
    assert api.reviews.specs == []


async def test_an_unknown_token_is_refused_and_reviewed_again_after_two_seconds(api: Guarded) -> None:
    header = {"Authorization": "Bearer token-of-alice"}
    assert [await api.get_status(POD, header) for _ in range(2)] == [401, 401]
    assert len(api.reviews.list_specs(TOKEN_REVIEW)) == 1
    api.reviews.build_header("alice", READS_LLM)
    api.clock.now += 2
    assert await api.get_status(POD, header) == 200


@pytest.mark.parametrize(
    "status",
    [
        {"authenticated": True, "user": {"username": "alice"}},
        {"authenticated": True, "user": {"username": "alice"}, "audiences": ["https://kubernetes.default.svc"]},
        {"authenticated": True, "user": {"username": ""}, "audiences": ["schedulerlog"]},
        {"authenticated": True, "user": {}, "audiences": ["schedulerlog"]},
        {"authenticated": False, "user": {"username": "alice"}, "audiences": ["schedulerlog"]},
    ],
)
async def test_a_token_without_our_audience_or_without_a_name_is_refused(api: Guarded, status: object) -> None:
    header = api.reviews.build_header("alice", READS_LLM)
    api.reviews.answer = {"status": status}
    assert await api.get_status(POD, header) == 401


async def test_headers_that_name_another_user_change_nothing(api: Guarded) -> None:
    header = api.reviews.build_header("alice", READS_LLM) | {
        "Impersonate-User": "admin",
        "X-Remote-User": "admin",
        "X-Remote-Group": "system:masters",
        "X-Forwarded-User": "admin",
    }
    assert await api.get_status(OTHER, header) == 403
    assert [spec["user"] for spec in api.reviews.list_specs(ACCESS_REVIEW)] == ["alice"]


async def test_the_review_has_everything_of_the_user_and_names_the_pod(api: Guarded) -> None:
    header = api.reviews.build_header("alice", READS_LLM)
    user = {"username": "alice", "uid": "u-1", "groups": ["g", "h"], "extra": {"k": ["v", "w"]}}
    api.reviews.users["token-of-alice"] = user
    assert await api.get_status(POD, header) == 200
    assert api.reviews.list_specs(ACCESS_REVIEW) == [
        {
            "user": "alice",
            "uid": "u-1",
            "groups": ["g", "h"],
            "extra": {"k": ["v", "w"]},
            "resourceAttributes": {
                "verb": "get",
                "group": "schedulerlog.io",
                "version": "*",
                "resource": "pods",
                "subresource": "schedulerlog",
                "namespace": "llm",
                "name": "deepseek-a",
            },
        }
    ]


async def test_a_token_that_has_ended_is_refused_whatever_is_remembered(api: Guarded) -> None:
    api.today.now = 1_700_000_000
    token = ".".join(("e30", "eyJleHAiOjE3MDAwMDAwMDV9", "c2ln"))  # {"exp": 1700000005}
    api.reviews.users[token] = {"username": "alice"}
    api.reviews.grants.add(READS_LLM)
    header = {"Authorization": f"Bearer {token}"}
    assert await api.get_status(POD, header) == 200
    api.today.now += 5
    assert await api.get_status(POD, header) == 401


async def test_tokens_that_are_not_valid_are_few_for_each_address(api: Guarded) -> None:
    """Row 58."""
    alice = api.reviews.build_header("alice", READS_LLM)
    assert await api.get_status(POD, alice) == 200
    before = len(api.reviews.list_specs(TOKEN_REVIEW))
    guesses = [await api.get_status(POD, {"Authorization": f"Bearer guess-{number}"}) for number in range(60)]
    assert guesses == [401] * 50 + [429] * 10
    assert len(api.reviews.list_specs(TOKEN_REVIEW)) == before + 50
    # Who is known from the same address is answered as before.
    assert await api.get_status(POD, alice) == 200


async def test_no_token_and_no_query_is_in_a_log_line_a_metric_or_an_error(
    api: Guarded, caplog: pytest.LogCaptureFixture
) -> None:
    """Row 75."""
    caplog.set_level("DEBUG")
    prom = api.reviews.build_header("prom", Grant("prom", "get", "/metrics"))
    api.reviews.answer = KubeApiError(500, "etcd is away")
    answers = [
        await api.client.get(path + "?q=secret-words&access_token=secret-token", headers={"Authorization": value})
        for path in (POD, OTHER, "/no/such/path", "/api/v1/schedulerlogs")
        for value in ("Bearer secret-token", "Basic secret-token")
    ]
    api.reviews.answer = None
    answers.append(await api.client.get("/metrics", headers=prom))
    # The client of this test logs what it sends.
    lines = [record.getMessage() for record in caplog.records if record.name != "httpx"]
    texts = [answer.text for answer in answers] + lines
    assert not [text for text in texts if "secret" in text]
    assert 'status="401"' in answers[-1].text
    assert "deepseek" not in answers[-1].text
