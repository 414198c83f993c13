"""A browser's login: the pasted token is checked as every other one, and counts for pages alone."""

import pytest
from httpx import Response
from starlette.datastructures import Headers

from api.ui.cookies import choose_cookie_name, choose_target, derive_own_origin, is_sent_by_us, is_token, set_cookie
from runtime.kubernetes.errors import KubeApiError
from tests.support.fakes.reviews import TOKEN_REVIEW
from tests.support.harness.api_app import POD
from tests.support.harness.guarded_api import READS_LLM, Guarded

OURS = {"sec-fetch-site": "same-origin"}
PAGE = "/ui/go?pod=a&namespace=llm"
TOKEN = "token-of-alice"  # noqa: S105 - of no cluster


@pytest.fixture(scope="module")
def application() -> Guarded:
    return Guarded()


@pytest.fixture
def api(application: Guarded) -> Guarded:
    application.begin()
    application.client.cookies.clear()
    application.reviews.build_header("alice", READS_LLM)
    return application


async def log_in(api: Guarded, token: str = TOKEN, headers: dict[str, str] = OURS) -> Response:
    return await api.client.post("/ui/login", data={"token": token, "next": PAGE}, headers=headers)


async def test_who_is_not_known_is_led_to_the_login_and_back(api: Guarded) -> None:
    answer = await api.get(PAGE)
    assert answer.status_code == 303
    form = await api.get(answer.headers["location"])
    assert form.status_code == 200
    assert 'name="next" value="/ui/go?pod=a&amp;namespace=llm"' in form.text
    answer = await log_in(api, f" {TOKEN}\n")
    assert (answer.status_code, answer.headers["location"]) == (303, PAGE)
    assert (await api.get(PAGE)).headers["location"] == "/ui/pods/llm/a"


async def test_the_cookie_is_read_by_no_script_and_sent_by_no_other_site(api: Guarded) -> None:
    cookie = (await log_in(api)).headers["set-cookie"]
    assert cookie == f"schedulerlog_token={TOKEN}; Path=/; HttpOnly; SameSite=Strict"
    assert set_cookie("t", "https") == "__Host-schedulerlog=t; Path=/; HttpOnly; SameSite=Strict; Secure"


async def test_the_cookie_counts_for_pages_alone(api: Guarded) -> None:
    await log_in(api)
    assert (await api.get("/ui")).status_code == 200
    assert (await api.get(POD)).status_code == 401
    assert (await api.get("/metrics")).status_code == 401


async def test_a_header_counts_before_the_cookie(api: Guarded) -> None:
    await log_in(api)
    assert (await api.get("/ui", Authorization="Bearer token-of-nobody")).status_code == 303


@pytest.mark.parametrize("token", ["", "two words", "a\r\nb", "x" * 5000, "<script>", "token-of-bob"])
async def test_a_token_that_is_not_valid_sets_no_cookie_and_shows_the_form_again(api: Guarded, token: str) -> None:
    answer = await log_in(api, token)
    assert answer.status_code == 400
    assert "set-cookie" not in answer.headers
    assert 'role="alert"' in answer.text
    assert not token or token not in answer.text


async def test_a_token_is_refused_while_none_can_be_checked(api: Guarded) -> None:
    api.reviews.answer = KubeApiError(503, "down")
    answer = await log_in(api)
    assert answer.status_code == 400
    assert "set-cookie" not in answer.headers


async def test_many_wrong_tokens_from_one_address_are_refused_as_everywhere(api: Guarded) -> None:
    statuses = [(await log_in(api, f"wrong-{number}")).status_code for number in range(60)]
    assert set(statuses) == {400, 429}
    assert len(api.reviews.list_specs(TOKEN_REVIEW)) == 50


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
        {"origin": "null"},
        {"origin": "http://elsewhere.example"},
        {"origin": "https://localhost"},
    ],
)
async def test_a_form_of_another_site_is_refused_before_anything_is_asked(
    api: Guarded, headers: dict[str, str]
) -> None:
    for path in ("/ui/login", "/ui/logout", "/ui"):
        answer = await api.client.post(path, data={"token": TOKEN}, headers=headers)
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers
    assert api.reviews.specs == []


async def test_an_older_browser_says_where_the_form_is_from(api: Guarded) -> None:
    assert (await log_in(api, headers={"origin": "http://localhost"})).status_code == 303


async def test_logging_out_removes_the_cookie(api: Guarded) -> None:
    await log_in(api)
    answer = await api.client.post("/ui/logout", headers=OURS)
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert (await api.get("/ui")).status_code == 303


async def test_a_token_that_has_ended_leads_to_the_login_and_is_forgotten(api: Guarded) -> None:
    await log_in(api)
    api.reviews.users.clear()
    api.clock.now += 60
    answer = await api.get("/ui")
    assert answer.status_code == 303
    assert "Max-Age=0" in answer.headers["set-cookie"]


@pytest.mark.parametrize("path", ["/ui/login", "/ui/static/style.css", "/ui/static/page.js", "/ui/static/icon.svg"])
async def test_what_holds_nothing_of_a_cluster_is_for_everybody(api: Guarded, path: str) -> None:
    assert (await api.get(path)).status_code == 200
    assert api.reviews.specs == []


async def test_files_are_known_by_name_and_checked_by_their_tag(api: Guarded) -> None:
    answer = await api.get("/ui/static/style.css")
    assert answer.headers["content-type"] == "text/css; charset=utf-8"
    again = await api.client.get("/ui/static/style.css", headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    for name in ("..", "x.css", "texts.toml"):
        assert (await api.client.get(f"/ui/static/{name}")).status_code in (303, 404)


@pytest.mark.parametrize("path", ["/ui/login", "/ui/static/page.js", "/ui/nothing", "/embed/nothing"])
async def test_every_page_is_under_the_strict_policy(api: Guarded, path: str) -> None:
    headers = (await api.client.get(path, headers=api.reviews.build_header("alice"))).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == "'self'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"


async def test_a_path_that_there_is_not_is_a_page_of_its_own(api: Guarded) -> None:
    answer = await api.client.get("/ui/nothing", headers=api.reviews.build_header("alice"))
    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize(
    ("requested", "expected"),
    [
        ("/ui/pods/llm/a?tab=nodes", "/ui/pods/llm/a?tab=nodes"),
        ("//evil.example", "/ui"),
        ("https://evil.example/ui", "/ui"),
        ("/ui//evil.example", "/ui"),
        ("/ui/\\evil", "/ui"),
        ("/uix", "/ui"),
        ("/ui/a\r\nSet-Cookie: x", "/ui"),
        ("javascript:alert(1)", "/ui"),
        ("", "/ui"),
    ],
)
def test_the_login_leads_to_pages_of_ours_alone(requested: str, expected: str) -> None:
    assert choose_target(requested) == expected


def test_a_host_that_can_be_none_is_no_origin() -> None:
    assert derive_own_origin(Headers({"host": "h.example:8443"}), "https") == "https://h.example:8443"
    assert derive_own_origin(Headers({"host": "[::1]:80"}), "http") == "http://[::1]:80"
    assert derive_own_origin(Headers({"host": "a' onclick='x"}), "http") == ""
    assert not is_sent_by_us(Headers({"host": "a b", "origin": ""}), "http")


def test_a_cookie_over_https_is_bound_to_the_host() -> None:
    assert choose_cookie_name("https").startswith("__Host-")
    assert is_token("a.b-c_d~e+f/g==")
    assert not is_token("a;b")
