"""Reviews of callers by the API server: how often the API asks for them, and what it answers while that fails.

A proxy before the real API server counts the reviews and fails as a row wants. The rows are those of the acceptance
matrix; docs/security-tests.md says which test shows which row.
"""

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from api.authority.review_api import ReviewApi
from api.authority.reviewer import ALLOWED_SECONDS, Reviewer
from dev.embedded.control_plane import ControlPlane
from runtime.kubernetes.credentials import choose_loader
from schemas.json_types import Json
from tests.support.backends import Addresses
from tests.support.control_plane.callers import build_rule
from tests.support.control_plane.objects import create
from tests.support.control_plane.service_account import RBAC
from tests.support.harness.api_app import Caller, answer_nothing
from tests.support.harness.guarded_api import Clock
from tests.support.harness.tenants import (
    ACCESS_REVIEW,
    MANY,
    OTHERS_POD,
    PODS,
    TOKEN_REVIEW,
    Tenants,
    tenants,
)
from tests.support.http_proxy import Passed, Replaced
from tests.support.waiting import await_end, eventually, until

LOG = "/namespaces/{team_a}/pods/train-0/schedulerlog"
OTHERS_LOG = "/namespaces/{team_b}/pods/" + OTHERS_POD + "/schedulerlog"
ADMIN = {
    "Impersonate-User": "admin", "X-Remote-User": "admin", "X-Remote-Group": "system:masters",
    "X-Forwarded-User": "admin",
}  # fmt: skip


@pytest.fixture(scope="module")
def running(
    control_plane: ControlPlane, backends: Addresses, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Tenants]:
    with tenants(control_plane, backends, tmp_path_factory.mktemp("tenants")) as world:
        # Until the roles are known to the API server's authorizer.
        for name, path in (("alice", LOG), ("lead", "/pods?namespace={team_a}"), ("nodes-lead", "/nodes/{node}")):
            statuses = partial(_get_status, world, name, path)
            assert until(statuses, lambda status: status == 200) == 200, name
        yield world


def _get_status(world: Tenants, caller: str, path: str) -> int:
    return world.get(caller, path).status_code


@pytest.fixture
def world(running: Tenants) -> Iterator[Tenants]:
    """Each test begins with proxies that hand everything on and remember nothing."""
    running.reviews.reset()
    running.searches.reset()
    yield running
    running.reviews.reset()


def build_user(world: Tenants, name: str) -> str:
    return f"system:serviceaccount:{world.team_a}:{name}"


def connect_from(world: Tenants, address: str) -> httpx.Client:
    """Connect from another address: tokens that are not valid are limited for each."""
    return httpx.Client(
        base_url=world.client.base_url, transport=httpx.HTTPTransport(local_address=address), timeout=30
    )


def test_without_a_token_nothing_is_asked(world: Tenants) -> None:
    """Row 1."""
    assert world.get("nobody", LOG).status_code == 401
    assert (world.reviews.passed, world.list_searches()) == ([], [])


def test_what_is_no_bearer_token_costs_no_review(world: Tenants) -> None:
    """Row 2."""
    token = world.renew_header("alice")["Authorization"]
    path = "/api/v1" + world.fill_names(LOG)
    for values in (["Basic YTpi"], ["Bearer"], ["bearer  x y"], [token, token]):
        answer = world.client.get(path, headers=[("Authorization", value) for value in values])
        assert answer.status_code == 401, values
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert set(answer.json()) >= {"error", "next", "code"}
    assert world.client.get(path, headers={"Authorization": "Bearer " + "x" * 100_000}).status_code == 431
    assert (world.reviews.passed, world.list_searches()) == ([], [])


def test_a_token_that_the_api_server_does_not_know_is_remembered_for_two_seconds(world: Tenants) -> None:
    """Row 3."""
    bogus = {"Authorization": f"Bearer bogus-{time.time()}"}
    assert [world.get_with(bogus, LOG).status_code for _ in range(2)] == [401, 401]
    before = len(world.list_reviews(TOKEN_REVIEW))
    assert before <= 2
    time.sleep(2)
    assert world.get_with(bogus, LOG).status_code == 401
    assert len(world.list_reviews(TOKEN_REVIEW)) == before + 1
    assert world.list_reviews(ACCESS_REVIEW) == []


@pytest.mark.parametrize(
    ("row", "changed"),
    [
        (4, {"audiences": []}),
        (4, {"audiences": ["https://kubernetes.default.svc"]}),
        (5, {"user": {"username": "", "groups": ["system:masters"]}}),
        (5, {"user": {}}),
    ],
)
def test_a_token_without_our_audience_or_a_name_is_refused(world: Tenants, row: int, changed: Json) -> None:
    """An API server that knows no audiences, or a webhook that names nobody."""

    def change(passed: Passed, answer: Json) -> Json:
        assert answer["status"]["authenticated"], row
        return answer | {"status": answer["status"] | changed}

    world.reviews.change = change
    assert world.get_with(world.renew_header("alice"), LOG).status_code == 401
    assert world.list_reviews(ACCESS_REVIEW) == []


def test_headers_that_name_another_user_are_in_no_review(world: Tenants) -> None:
    """Row 7."""
    assert world.get_with(world.renew_header("alice") | ADMIN, OTHERS_LOG).status_code == 403
    (spec,) = world.list_reviews(ACCESS_REVIEW)
    assert spec["user"] == build_user(world, "alice")
    assert "admin" not in str(spec)
    assert "system:masters" not in str(spec)


def test_a_token_that_has_ended_is_refused_at_once_and_ends_its_watch(world: Tenants) -> None:
    """Rows 8 and 62: whatever is remembered, and without a question."""
    ending = world.build_ending_header("lead", 6)
    watched: list[Json] = []

    def watch() -> float:
        path = "/schedulerlogs?watch=true&sendInitialEvents=false&timeoutSeconds=60&namespace={team_a}"
        with world.watch_with(ending, path) as events:
            watched.extend(events)
        return time.monotonic()

    ends_at = time.monotonic() + 6
    with ThreadPoolExecutor(1) as thread:
        closed = thread.submit(watch)
        assert world.get_with(ending, LOG).status_code == 200
        last_read_at, status = await_end(lambda: world.get_with(ending, LOG).status_code, lambda status: status != 200)
        assert (status, last_read_at < ends_at) == (401, True)
        # By itself the watch ends after a minute.
        assert closed.result(60) < ends_at + 40
    # The watch asks again while it lasts; after the end nobody asks.
    before = len(world.reviews.passed)
    assert world.get_with(ending, LOG).status_code == 401
    assert len(world.reviews.passed) == before
    (last,) = watched
    assert (last["type"], last["object"]["code"]) == ("ERROR", 401)


def test_a_review_has_everything_of_the_user_and_nothing_of_the_request(world: Tenants) -> None:
    """Row 10."""
    sent = {"X-Remote-Extra-Scopes": "all", "X-Remote-Group": "dev", "X-Remote-Uid": "u"}
    assert world.get_with(world.renew_header("alice") | sent, LOG).status_code == 200
    (reviewed,) = (request for request in world.reviews.passed if request.path == TOKEN_REVIEW)
    user = Passed(*reviewed[:2], reviewed.answered, b"").parse_json()["status"]["user"]
    assert user["groups"] == [
        "system:serviceaccounts",
        f"system:serviceaccounts:{world.team_a}",
        "system:authenticated",
    ]
    assert "authentication.kubernetes.io/credential-id" in user["extra"]
    (spec,) = world.list_reviews(ACCESS_REVIEW)
    identity = {name: value for name, value in spec.items() if name != "resourceAttributes"}
    assert identity == {
        "user": user["username"], "uid": user["uid"], "groups": user["groups"], "extra": user["extra"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("row", "caller", "method", "path", "attributes"),
    [
        (11, "alice", "GET", LOG, {"verb": "get", "resource": "pods", "namespace": "{team_a}", "name": "train-0"}),
        (12, "alice", "HEAD", LOG, {"verb": "get", "resource": "pods", "namespace": "{team_a}", "name": "train-0"}),
        (29, "all", "GET", "/schedulerlogs", {"verb": "list", "resource": "pods"}),
        (31, "lead", "GET", "/schedulerlogs?namespace={team_a}&pod=train-1",
         {"verb": "list", "resource": "pods", "namespace": "{team_a}"}),
        (42, "nodes", "GET", "/nodes/{node}", {"verb": "get", "resource": "nodes", "name": "{node}"}),
    ],
)  # fmt: skip
def test_one_right_is_asked_for(
    world: Tenants, row: int, caller: str, method: str, path: str, attributes: dict[str, str]
) -> None:
    headers = world.renew_header(caller)
    answer = world.client.request(method, "/api/v1" + world.fill_names(path), headers=headers)
    assert answer.status_code == 200, f"row {row}: {answer.text}"
    # Our group, not Kubernetes' own (the matrix was written before that was decided): its pods/log says nothing of us.
    ours = {"group": "schedulerlog.io", "version": "*", "subresource": "schedulerlog"}
    (spec,) = world.list_reviews(ACCESS_REVIEW)
    assert spec["resourceAttributes"] == ours | {name: world.fill_names(value) for name, value in attributes.items()}
    if method == "HEAD":
        got = world.client.get("/api/v1" + world.fill_names(path), headers=headers)
        assert {**answer.headers, "date": ""} == {**got.headers, "date": ""}


def test_existence_does_not_show_in_what_is_asked_of_the_index(world: Tenants) -> None:
    """Rows 13 and 14: the same work for what there is and what there is not, instead of the same time by a clock."""
    prom = world.headers["prom"]

    def work(path: str) -> tuple[int, list[Json], list[bytes], list[str]]:
        headers = world.renew_header("alice")
        memory = world.client.get("/metrics", headers=prom).text
        world.reviews.reset()
        world.searches.reset()
        status = world.get_with(headers, path).status_code
        attributes = [spec["resourceAttributes"] | {"name": ""} for spec in world.list_reviews(ACCESS_REVIEW)]
        searched = world.list_searches()
        after = world.client.get("/metrics", headers=prom).text
        return status, attributes, searched, sorted(set(_list_lookups(after)) ^ set(_list_lookups(memory)))

    there, absent = work(OTHERS_LOG), work("/namespaces/{team_b}/pods/does-not-exist/schedulerlog")
    assert there == absent
    assert (there[0], len(there[1]), there[2], there[3]) == (403, 1, [], [])
    # What is compared does see a look-up.
    assert work(LOG)[3]


def _list_lookups(metrics: str) -> list[str]:
    return [line for line in metrics.splitlines() if line.startswith("schedulerlog_api_lookups_total")]


def test_a_list_of_everything_costs_one_review_however_many_namespaces_a_caller_has(world: Tenants) -> None:
    """Row 35: nothing is narrowed by itself, so there is no fan-out."""
    names = [f"many-{number:02}-{world.cluster}" for number in range(30)]
    world.callers.create_account("many")
    role = f"many-{world.cluster}"
    subject = {"kind": "ServiceAccount", "name": "many", "namespace": world.team_a}
    binding = {"metadata": {"name": role}, "subjects": [subject]}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    with world.control_plane.open_client() as client, ThreadPoolExecutor(8) as threads:
        create(client, f"{RBAC}/clusterroles", {"metadata": {"name": role}, "rules": [build_rule(PODS, "list")]})

        def bind(name: str) -> None:
            create(client, "/api/v1/namespaces", {"metadata": {"name": name}})
            create(client, f"{RBAC}/namespaces/{name}/rolebindings", binding | {"roleRef": reference})

        try:
            list(threads.map(bind, names))
            header = world.renew_header("many")
            eventually(lambda: world.get_with(header, f"/pods?namespace={names[-1]}").status_code == 200)
            world.reviews.reset()
            world.searches.reset()
            answer = world.get_with(world.renew_header("many"), "/schedulerlogs")
            assert (answer.status_code, "namespace=" in answer.json()["next"]) == (403, True)
            assert len(world.list_reviews(ACCESS_REVIEW)) == 1
            assert world.list_searches() == []
        finally:
            list(threads.map(lambda name: client.delete(f"/api/v1/namespaces/{name}"), names))
            client.delete(f"{RBAC}/clusterroles/{role}")


def test_the_namespace_is_a_filter_beside_the_words_of_a_search(world: Tenants) -> None:
    """Row 36."""
    words = f"namespace:{world.team_b} OR *"
    answer = world.client.get(
        "/api/v1/schedulerlogs",
        params={"namespace": world.team_a, "q": words, "reason": "CardInsufficientMemory"},
        headers=world.headers["lead"],
    )
    assert answer.status_code in (200, 400), answer.text
    for path in ("?namespace={team_a}&q=fit", "?namespace={team_a}&node={node}&q=fit&reason=CardInsufficientMemory"):
        world.searches.reset()
        assert world.get("lead", "/schedulerlogs" + path).status_code == 200
        bodies = [
            call.parse_json() for call in world.searches.passed if call.path.partition("?")[0].endswith("_search")
        ]
        assert bodies
        for body in bodies:
            clauses = body["query"]["bool"]["filter"]
            assert [clause for clause in clauses if clause.get("term", {}).get("namespace") == world.team_a], clauses


def test_max_20_namespaces_are_asked_about_for_a_node(world: Tenants) -> None:
    """Row 45: pods of further ones count as those of others."""
    answer = world.get_with(world.renew_header("nodes-lead"), "/nodes/{node}-many/occupancy")
    assert answer.status_code == 200
    assert (answer.json()["pods"], answer.json()["other_pods"]) == ([], MANY)
    assert "held-" not in answer.text
    attributes = [spec["resourceAttributes"] for spec in world.list_reviews(ACCESS_REVIEW)]
    assert [spec["verb"] for spec in attributes] == ["get"] + ["list"] * 21
    assert "namespace" not in attributes[1]
    assert len({spec["namespace"] for spec in attributes[2:]}) == 20


def test_two_requests_cost_one_review_of_each_kind(world: Tenants) -> None:
    """Row 51."""
    headers = world.renew_header("alice")
    assert [world.get_with(headers, LOG).status_code for _ in range(2)] == [200, 200]
    assert (len(world.list_reviews(TOKEN_REVIEW)), len(world.list_reviews(ACCESS_REVIEW))) == (1, 1)


def test_without_the_api_server_only_what_is_remembered_is_answered(world: Tenants) -> None:
    """Rows 54 and 55."""
    remembered, unknown = world.renew_header("alice"), world.renew_header("alice")
    asked_at = time.monotonic()
    assert world.get_with(remembered, LOG).status_code == 200
    answered_at = time.monotonic()
    world.reviews.is_down = True
    refused = world.get_with(unknown, LOG)
    assert (refused.status_code, "retry-after" in refused.headers) == (503, True)
    world.reviews.is_down = False
    # The failure is not remembered.
    assert world.get_with(unknown, LOG).status_code == 200
    world.reviews.is_down = True
    last_read_at, ended = await_end(lambda: world.get_with(remembered, LOG).status_code, lambda status: status != 200)
    # The reviews were answered between the two times.
    assert (ended, last_read_at < answered_at + ALLOWED_SECONDS) == (503, True)
    assert time.monotonic() > asked_at + ALLOWED_SECONDS


RUBBISH = [
    *(Replaced(status, b'{"kind": "Status", "apiVersion": "v1", "status": "Failure"}') for status in (401, 403, 500)),
    Replaced(429, b"{}", (("Retry-After", "1"),)),
    Replaced(200, b"<html><body>a proxy's page</body></html>", (("Content-Type", "text/html"),)),
    Replaced(200, b""),
    Replaced(200, b'{"status": {"allowed": tr'),
    Replaced(200, b'{"status": {}}'),
    Replaced(200, b'{"status": null}'),
    Replaced(200, b'{"status": {"allowed": "true", "authenticated": "true", "user": {"username": "x"}}}'),
]


@pytest.mark.parametrize("answer", RUBBISH, ids=lambda answer: f"{answer.status} {answer.body[:20]!r}")
def test_an_answer_that_is_not_a_review_is_503(world: Tenants, answer: Replaced) -> None:
    """Row 56."""
    headers = world.renew_header("alice")
    for kind in (TOKEN_REVIEW, ACCESS_REVIEW):
        world.reviews.replace = lambda passed, kind=kind: answer if passed.path == kind else None  # type: ignore[misc]
        assert world.get_with(headers, LOG).status_code == 503, kind
    world.reviews.reset()
    assert world.get_with(headers, LOG).status_code == 200


def test_denied_wins_over_allowed(world: Tenants) -> None:
    """Row 56."""

    def change(passed: Passed, answer: Json) -> Json:
        is_access = passed.path == ACCESS_REVIEW
        return answer | {"status": answer["status"] | {"denied": True}} if is_access else answer

    world.reviews.change = change
    assert world.get_with(world.renew_header("alice"), LOG).status_code == 403


def test_our_own_missing_right_is_in_the_log(world: Tenants) -> None:
    """Row 56: 401 and 403 are about our own account."""
    world.reviews.replace = lambda _: Replaced(403, b'{"kind": "Status", "message": "may not create tokenreviews"}')
    assert world.get_with(world.renew_header("alice"), LOG).status_code == 503
    eventually(
        lambda: "the API can't check callers and refuses them: 403" in world.log.read_text(), "nothing is logged"
    )


def test_an_api_server_that_hangs_delays_no_caller_who_is_remembered(world: Tenants) -> None:
    """Row 57."""
    remembered, unknown = world.renew_header("alice"), world.renew_header("alice")
    assert world.get_with(remembered, LOG).status_code == 200
    with ThreadPoolExecutor(101) as threads, connect_from(world, "127.0.0.4") as guessing:
        path = "/api/v1" + world.fill_names(LOG)

        def guess(number: int) -> int:
            return guessing.get(path, headers={"Authorization": f"Bearer held-{number}"}, timeout=60).status_code

        with world.reviews.holding():
            waiting = threads.submit(world.get_with, unknown, LOG)
            guesses = [threads.submit(guess, number) for number in range(100)]
            # No review is answered before the block ends: who needed one gets none of these.
            statuses = [world.get_with(remembered, LOG).status_code for _ in range(10)]
            assert (statuses, waiting.result(60).status_code) == ([200] * 10, 503)
            assert {future.result(60) for future in guesses} == {503}
        # The bound of reviews in flight, of each kind.
        assert 1 < world.reviews.max_at_once <= 64


def test_many_guesses_cost_few_reviews_and_keep_no_caller_waiting(world: Tenants) -> None:
    """Row 58: fifty in ten seconds for an address; who is known is answered from memory, and who is new is reviewed.

    A new caller behind the same address has a token that the cluster has signed.
    """
    remembered = world.renew_header("alice")
    assert world.get_with(remembered, LOG).status_code == 200
    before, path = len(world.list_reviews(TOKEN_REVIEW)), "/api/v1" + world.fill_names(LOG)
    with connect_from(world, "127.0.0.5") as guessing, ThreadPoolExecutor(8) as threads:

        def guess(number: int) -> int:
            return guessing.get(path, headers={"Authorization": f"Bearer guess-{number}"}).status_code

        began = time.monotonic()
        guesses = threads.map(guess, range(1000))
        known_statuses = {world.get_with(remembered, LOG).status_code for _ in range(30)}
        new_statuses = {guessing.get(path, headers=world.renew_header("alice")).status_code for _ in range(30)}
        statuses = list(guesses)
        windows = 1 + (time.monotonic() - began) // 10
    assert known_statuses == new_statuses == {200}
    assert set(statuses) == {401, 429}
    # Eight may be under way when the fiftieth is refused; thirty are those of new callers.
    assert len(world.list_reviews(TOKEN_REVIEW)) - before <= 58 * windows + windows + 30
    assert statuses.count(401) <= 58 * windows


async def test_callers_at_once_share_one_review(world: Tenants) -> None:
    """Row 59: one of them hangs up, and takes the answer from nobody."""
    headers, path = world.renew_header("alice"), "/api/v1" + world.fill_names(LOG)
    limits = httpx.Limits(max_connections=200)
    async with httpx.AsyncClient(base_url=world.client.base_url, limits=limits, timeout=30) as client:
        with world.reviews.holding():
            asking = [asyncio.create_task(client.get(path, headers=headers)) for _ in range(200)]
            await asyncio.sleep(1)
            asking[0].cancel()
            await asyncio.sleep(0.1)
        assert [answer.status_code for answer in await asyncio.gather(*asking[1:])] == [200] * 199
    assert (len(world.list_reviews(TOKEN_REVIEW)), len(world.list_reviews(ACCESS_REVIEW))) == (1, 1)


def test_a_token_that_begins_as_another_is_another(world: Tenants) -> None:
    """Row 60. A newline can't be sent in a header; spaces before the token are not part of it."""
    headers = world.renew_header("alice")
    assert world.get_with(headers, LOG).status_code == 200
    longer = {"Authorization": headers["Authorization"] + "e"}
    shorter = {"Authorization": headers["Authorization"][:-1]}
    assert [world.get_with(header, LOG).status_code for header in (longer, shorter)] == [401, 401]
    assert len(world.list_reviews(TOKEN_REVIEW)) == 3
    spaced = {"Authorization": headers["Authorization"].replace(" ", "   ")}
    assert world.get_with(spaced, LOG).status_code == 200
    assert len(world.list_reviews(TOKEN_REVIEW)) == 3


async def test_a_clock_that_is_set_changes_nothing_of_how_long_a_right_is_remembered(world: Tenants) -> None:
    """Row 52, with the API's own reviewer on the API server: the time of day jumps, the monotonic clock is ours."""
    clock, today = Clock(), Clock()
    today.now = time.time()
    async with ReviewApi(choose_loader(world.kubeconfig, None)) as reviews:
        api = Caller(answer_nothing, Reviewer(reviews, "schedulerlog", clock=clock, now=today))
        headers, path = world.renew_header("alice"), "/api/v1" + world.fill_names(LOG)

        def list_own() -> list[Json]:
            """List the reviews of the token and of pods in the namespace: similar names are asked for too."""
            rights = [spec["resourceAttributes"] for spec in world.list_reviews(ACCESS_REVIEW)]
            return [*world.list_reviews(TOKEN_REVIEW), *(right for right in rights if right.get("namespace"))]

        async def count_reviews() -> int:
            before = len(list_own())
            # Nothing is recorded in this application: it may ask, and that is the answer.
            assert (await api.client.get(path, headers=headers)).status_code == 404
            return len(list_own()) - before

        assert await count_reviews() == 2
        for jump in (-3600, 1800):
            today.now += jump
            clock.now += 9.9
            assert await count_reviews() == 0
            clock.now += 0.1
            assert await count_reviews() == 2


async def test_a_route_that_asks_for_no_right_is_403(world: Tenants) -> None:
    """Row 19: a route that was added without one."""

    async def answer_without_right(_: Request) -> Response:
        return JSONResponse({"secret": "of another tenant"})

    async with ReviewApi(choose_loader(world.kubeconfig, None)) as reviews:
        api = Caller(answer_nothing, Reviewer(reviews, "schedulerlog"))
        api.app.add_route("/forgotten", answer_without_right)
        answer = await api.client.get("/forgotten", headers=world.headers["all"])
    assert (answer.status_code, "secret" in answer.text) == (403, False)
