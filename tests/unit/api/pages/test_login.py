import pytest
from httpx import Response

from api.pages.cookies import cookie_name, is_sent_by_us, is_token, own_origin, set_cookie, target
from starlette.datastructures import Headers
from tests.support.harness.guarded_api import READS_LLM, Guarded

OURS = {"sec-fetch-site": "same-origin"}
PAGE = "/ui/pods/llm/deepseek-a"


@pytest.fixture(scope="module")
def guarded() -> Guarded:
    return Guarded()


@pytest.fixture
def api(guarded: Guarded) -> Guarded:
    guarded.begin()
    guarded.client.cookies.clear()
    guarded.reviews.grant(READS_LLM)
    return guarded


async def log_in(api: Guarded, token: str = "alice", **headers: str) -> Response:
    return await api.client.post("/ui/login", data={"token": token, "next": PAGE}, headers=OURS | headers)


async def test_who_is_not_known_is_led_to_the_login_and_back(api: Guarded) -> None:
    answer = await api.get(f"{PAGE}?tab=nodes")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/ui/login?next=%2Fui%2Fpods%2Fllm%2Fdeepseek-a%3Ftab%3Dnodes"
    form = await api.get(answer.headers["location"])
    assert form.status_code == 200
    assert 'name="next" value="/ui/pods/llm/deepseek-a?tab=nodes"' in form.text
