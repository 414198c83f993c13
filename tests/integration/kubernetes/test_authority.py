"""Who may read what: one API that asks a real API server, callers with real tokens and Roles, and a real index.

The rows of the matrix that need no API server are in tests/unit/api/authority.
"""

import json
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import NamedTuple

import httpx
import pytest

from embedded.control_plane import ControlPlane
from schemas.events import DeviceAllocation, NodeObserved, NodeRegistered, PodRef
from schemas.placements import PodPlacement
from tests.support.backends import Addresses
from tests.support.control_plane.callers import Callers, path_rule, rule
from tests.support.control_plane.objects import Json, created_namespace
from tests.support.control_plane.service_account import a_kubeconfig, service_account
from tests.support.harness.api_process import serving
from tests.support.harness.index_filling import NOW, Filling, a_finding, an_attempt, lines_of
from tests.support.waiting import eventually

OTHERS_POD = "secret-model"
"""The other tenant's pod: its name is in no answer to who may not read it."""
START = NOW - timedelta(hours=1)
PODS, NODES = "pods/schedulerlog", "nodes/schedulerlog"
REVIEWS = [
    {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
    {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
]
"""What system:auth-delegator allows."""


class World(NamedTuple):
    client: httpx.Client
    callers: Callers
    headers: dict[str, dict[str, str]]
    team_a: str
    team_b: str
    node: str
    filling: Filling
    cluster: str

    def publish(self, *pods: str, after: timedelta) -> None:
        """Onto the topic: an attempt of each, so long after the start."""
        attempts = [an_attempt(pod, started_at=START + after) for pod in pods]
        self.filling.publish(*(each.model_copy(update={"cluster": self.cluster}) for each in attempts))

    @contextmanager
    def watch(self, caller: str, path: str, **headers: str) -> Iterator[Iterator[Json]]:
        """The events, as they come."""
        headers = self.headers[caller] | headers
        with self.client.stream("GET", "/api/v1" + path.format(team_a=self.team_a), headers=headers) as answer:
            assert answer.status_code == httpx.codes.OK, answer.read()
            yield (json.loads(line.removeprefix("data: ")) for line in answer.iter_lines() if line.endswith("}"))

    def get(self, caller: str, path: str, **headers: str) -> httpx.Response:
        names = {"team_a": self.team_a, "team_b": self.team_b, "node": self.node}
        return self.client.get("/api/v1" + path.format(**names), headers=self.headers[caller] | headers)


@pytest.fixture(scope="module")
def world(
    control_plane: ControlPlane, backends: Addresses, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    mark = uuid.uuid4().hex[:8]
    team_a, team_b, node = f"team-a-{mark}", f"team-b-{mark}", f"node-{mark}"
    filling = Filling(backends.bootstrap_servers, backends.opensearch_url)
    fill(filling, mark, team_a, team_b, node)
    folder = tmp_path_factory.mktemp("api-account")
    with ExitStack() as stack:
        for name in (team_a, team_b):
            stack.enter_context(created_namespace(control_plane, name))
        stack.enter_context(service_account(control_plane, team_a, REVIEWS, folder))
        settings = {
            "SCHEDULERLOG_API_AUTHENTICATION": "kubernetes",
            "SCHEDULERLOG_KUBECONFIG": str(a_kubeconfig(folder, control_plane)),
            "SCHEDULERLOG_CLUSTER_NAME": mark,
            "SCHEDULERLOG_API_WATCHES": "30",
        }
        callers = Callers(control_plane, team_a)
        stack.callback(callers.remove)
        headers = granted(callers, team_a, team_b)
        api = stack.enter_context(serving(backends.bootstrap_servers, backends.opensearch_url, **settings))
        eventually(api.is_ready, "the API is not ready")
        yield World(api.client, callers, headers, team_a, team_b, node, filling, mark)


def granted(callers: Callers, team_a: str, team_b: str) -> dict[str, dict[str, str]]:
    """The callers of the matrix, each with the header that names it."""
    for name in (
        "alice",
        "one",
        "lead",
        "bob",
        "pods",
        "all",
        "nodes",
        "nodes-lead",
        "prom",
        "revoked",
        "leaving",
        "ending",
    ):
        callers.account(name)
    callers.grant("alice", rule(PODS, "get"), namespace=team_a)
    callers.grant("one", rule(PODS, "get", names=["train-0"]), namespace=team_a)
    callers.grant("lead", rule(PODS, "get", "list"), namespace=team_a)
    callers.grant("bob", rule(PODS, "get", "list"), namespace=team_b)
    callers.grant("pods", rule("pods", "get", "list", group=""), namespace=team_a)
    callers.grant("all", rule(PODS, "get", "list"))
    callers.grant("nodes", rule(NODES, "get"))
    callers.grant("nodes-lead", rule(NODES, "get", "list"))
    callers.grant("nodes-lead", rule(PODS, "get", "list"), namespace=team_a)
    callers.grant("prom", path_rule("/metrics"), path_rule("/readyz"))
    callers.grant("leaving", rule(PODS, "get"), namespace=team_a)
    names = (
        "alice",
        "one",
        "lead",
        "bob",
        "pods",
        "all",
        "nodes",
        "nodes-lead",
        "prom",
        "revoked",
        "leaving",
        "ending",
    )
    other_audience = callers.header("alice", "https://kubernetes.default.svc")
    return {name: callers.header(name) for name in names} | {
        "nobody": {},
        "bogus": {"Authorization": "Bearer bogus"},
        "alice-for-another-audience": other_audience,
    }


def fill(filling: Filling, cluster: str, team_a: str, team_b: str, node: str) -> None:
    """Two tenants on one device; what is recorded of one names the pod of the other."""
    filling.provision()
    own = {"cluster": cluster}
    train, secret = f"{team_a}/train-0", f"{team_b}/{OTHERS_POD}"
    attempts = [an_attempt(pod, nodes=[node], chosen=node, bound=True) for pod in (train, f"{team_a}/train-1", secret)]
    locked = an_attempt(f"{team_a}/train-2", nodes=[node], chosen=node, bound=False)
    assert locked.bind
    bind = locked.bind.model_dump() | {"lock_holder": {"pod": secret, "locked_at": START}}
    locked = type(locked).model_validate(locked.model_dump() | {"bind": bind})
    filling.index(*(each.model_copy(update=own) for each in (*attempts, locked)))
    filling.index_placements(*(a_placement(cluster, each, node) for each in (train, secret)))
    registered = {
        "cluster": cluster, "node": node, "observed_at": START, "scheduler": "hami-scheduler", "registered": True,
        "handshake": "Reported", "uuid": [f"GPU-{node}"], "model": ["NVIDIA A100"], "mode": ["hami-core"], "index": [0],
        "healthy": [True], "memory_mib": [40960], "cores_percent": [100], "slots": [10], "numa": [0],
    }  # fmt: skip
    seen = NodeObserved(cluster=cluster, node=node, observed_at=START, capacity={}, allocatable={}, conditions=[])
    filling.index_observations(NodeRegistered.model_validate(registered), seen)
    lines = {"evidence": [f"{train} holds 20000 MiB", f"{secret} holds 30000 MiB"], "evidence_pods": [train, secret]}
    shared = a_finding(train, node=node).model_copy(update={**own, **lines})
    # As a log has them: which pods its lines are about is not recorded.
    logged = a_finding(train, node=f"{node}-b").model_copy(update={**own, "evidence": lines["evidence"]})
    filling.index_findings(shared, logged, a_finding(secret, node=node).model_copy(update=own))


def a_placement(cluster: str, pod: str, node: str) -> PodPlacement:
    namespace, name = pod.split("/")
    held = DeviceAllocation(uuid=f"GPU-{node}", container="main", memory_mib=20_000, cores_percent=40)
    return PodPlacement(
        cluster=cluster, id=pod, pod=PodRef(namespace=namespace, name=name, uid=f"uid-{name}"), node=node,
        started_at=START, scheduler="hami-scheduler", attempt_id="", phase="Running", allocations=[held],
    )  # fmt: skip


POD = "/namespaces/{team_a}/pods/train-0"
OTHER = "/namespaces/{team_b}/pods/" + OTHERS_POD
LISTS = ("pending?", "pods?", "trends?by=pool&", "trends?by=model&", "reports/failures?")
ROWS: list[tuple[int, str, str, int]] = [
    (1, "nobody", POD + "/schedulerlog", 401),
    (3, "bogus", POD + "/schedulerlog", 401),
    (4, "alice-for-another-audience", POD + "/schedulerlog", 401),
    (11, "alice", POD + "/schedulerlog", 200),
    (13, "alice", OTHER + "/schedulerlog", 403),
    (14, "alice", "/namespaces/{team_b}/pods/does-not-exist/schedulerlog", 403),
    (15, "alice", "/namespaces/{team_a}/pods/does-not-exist/schedulerlog", 404),
    (16, "one", POD + "/schedulerlog", 200),
    (16, "one", "/namespaces/{team_a}/pods/train-1/schedulerlog", 403),
    (17, "pods", POD + "/schedulerlog", 403),
    (18, "all", OTHER + "/schedulerlog", 200),
    *(
        (19, "alice", about + rest, status)
        for about, status in ((POD, 200), (OTHER, 403))
        for rest in ("/schedulerlog/history", "/scores", "/diagnosis", "/findings", "/occupancy", "/observations")
    ),
    (24, "alice", "/namespaces/Team-A/pods/train-0/schedulerlog", 400),
    (25, "lead", "/namespaces/-/pods/train-0/schedulerlog", 403),
    (29, "all", "/schedulerlogs", 200),
    (30, "lead", "/schedulerlogs", 403),
    (31, "lead", "/schedulerlogs?namespace={team_a}", 200),
    (32, "lead", "/schedulerlogs?namespace={team_b}", 403),
    (32, "lead", "/schedulerlogs?namespace={team_a}&namespace={team_b}", 400),
    (32, "lead", "/schedulerlogs?namespace=", 400),
    (33, "alice", "/schedulerlogs?namespace={team_a}", 403),
    (34, "alice", "/schedulerlogs?namespace={team_a}&pod=train-0", 403),
    (36, "lead", "/schedulerlogs?namespace={team_a}&node={node}", 200),
    (41, "all", "/findings", 200),
    (41, "lead", "/findings?namespace={team_a}", 200),
    (41, "lead", "/findings", 403),
    *((41, "lead", f"/{name}namespace={{team_a}}", 200) for name in LISTS),
    *((41, "lead", f"/{name}namespace={{team_b}}", 403) for name in LISTS),
    *((41, "lead", f"/{name[:-1]}", 403) for name in LISTS),
    (42, "nodes", "/nodes/{node}", 200),
    (42, "nodes", "/nodes/{node}/occupancy", 200),
    (43, "alice", "/nodes/{node}", 403),
    (43, "alice", "/nodes/{node}/occupancy", 403),
    (42, "nodes-lead", "/nodes", 200),
    (42, "nodes", "/nodes", 403),
    (46, "alice", POD + "/schedulerlog?detail=full&node={node}", 200),
    (47, "alice", "/namespaces/{team_a}/pods/train-2/schedulerlog?detail=full", 200),
    (48, "lead", "/findings?namespace={team_a}&finding=Overcommitted", 200),
]


@pytest.mark.parametrize(("row", "caller", "path", "status"), ROWS)
def test_a_row_of_the_matrix(world: World, row: int, caller: str, path: str, status: int) -> None:
    answer = world.get(caller, path)
    assert answer.status_code == status, f"row {row}: {answer.text}"
    if caller not in ("all", "bob") and status == 200:
        assert OTHERS_POD not in answer.text
        assert world.team_b not in answer.text


LONG = "x" * 100_000
LOG, OTHERS_LOG = f"/api/v1{POD}/schedulerlog", f"/api/v1{OTHER}/schedulerlog"
ADMIN = {
    "Impersonate-User": "admin", "X-Remote-User": "admin", "X-Remote-Group": "system:masters",
    "X-Forwarded-User": "admin", "X-Original-URL": "/healthz", "X-Rewrite-URL": "/healthz",
}  # fmt: skip
WRITES = ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE")
ODD_PATHS = (
    "/api/v1/namespaces/team-a%2Fpods%2Fx/pods/y/schedulerlog",
    "/api/v1/namespaces/%2e%2e/pods/y/schedulerlog",
    "/api/v1/namespaces/..%2f/pods/y/schedulerlog",
    "/api/v1/namespaces/a%252fb/pods/y/schedulerlog",
    "/api/v1/namespaces/a;b/pods/y/schedulerlog",
    "/api/v1//namespaces/a/pods/y/schedulerlog",
    "/api/v1/./namespaces//pods/y/schedulerlog",
    "/api/v1/namespaces/a%5Cb/pods/y/schedulerlog",
    "/api/v1/namespaces/a%00/pods/y/schedulerlog",
)
NO_NAMESPACES = ("team-a.", "a" * 64, "%D0%B0", "team-a%20")
REQUESTS: list[tuple[int, str, str, str, dict[str, str], set[int]]] = [
    *(
        (2, "nobody", "GET", LOG, {"Authorization": value}, {401})
        for value in ("Basic YTpi", "Bearer", "bearer  x y", "Bearer x, Bearer y")
    ),
    (2, "nobody", "GET", LOG, {"Authorization": f"Bearer {LONG}"}, {431}),
    (6, "nobody", "GET", LOG + "?access_token={token}", {}, {401}),
    (6, "nobody", "GET", LOG, {"Cookie": "token={token}"}, {401}),
    (6, "nobody", "GET", LOG, {"X-Forwarded-Access-Token": "{token}"}, {401}),
    *((7, "alice", "GET", OTHERS_LOG, {name: value}, {403}) for name, value in ADMIN.items()),
    (12, "alice", "HEAD", LOG, {}, {200}),
    *((20, "nobody", method, LOG, {}, {401}) for method in WRITES),
    *((20, "alice", method, LOG, {}, {405}) for method in WRITES),
    (21, "alice", "GET", OTHERS_LOG, {"If-None-Match": "{tag}"}, {403}),
    *((23, "all", "GET", path, {}, {400, 404}) for path in ODD_PATHS),
    *(
        (24, "alice", "GET", f"/api/v1/namespaces/{name}/pods/train-0/schedulerlog", {}, {400})
        for name in NO_NAMESPACES
    ),
    (26, "alice", "GET", OTHERS_LOG, {"X-HTTP-Method-Override": "OPTIONS"}, {403}),
    *((40, "lead", "GET", f"/api/v1/schedulerlogs?namespace={{team_a}}&continue={token}", {}, {400})
      for token in ("rubbish", "_all", "e30.e30", "%00")),
    *((74, "nobody", "GET", path, {}, {401}) for path in ("/docs", "/openapi.json", "/does-not-exist")),
    *((76, "alice", "GET", path, {}, {400, 401, 403, 404})
      for path in ("/healthz/../metrics", "/healthz/%2e%2e/metrics", "/metrics/", "/metricsx")),
]  # fmt: skip


@pytest.mark.parametrize(("row", "caller", "method", "path", "headers", "statuses"), REQUESTS)
def test_a_row_of_the_matrix_by_its_request(
    world: World, row: int, caller: str, method: str, path: str, headers: dict[str, str], statuses: set[int]
) -> None:
    names = {
        "team_a": world.team_a,
        "team_b": world.team_b,
        "token": world.headers["alice"]["Authorization"].removeprefix("Bearer "),
        "tag": world.get("bob", OTHER + "/schedulerlog").headers["etag"],
    }
    sent = world.headers[caller] | {name: value.format(**names) for name, value in headers.items()}
    answer = world.client.request(method, path.format(**names), headers=sent)
    assert answer.status_code in statuses, f"row {row}: {answer.status_code} {answer.text}"
    if answer.status_code == 401:
        assert answer.headers["www-authenticate"].split()[0] == "Bearer"
    if method == "HEAD":
        assert not answer.content


def test_a_pod_that_is_not_there_is_refused_as_one_that_is(world: World) -> None:
    """Rows 13 and 14: but for the name that was asked for, byte for byte."""
    there, absent = (
        world.get("alice", f"/namespaces/{{team_b}}/pods/{name}/schedulerlog") for name in (OTHERS_POD, "no-such-pod1")
    )
    assert there.text.replace(OTHERS_POD, "no-such-pod1") == absent.text
    assert there.status_code == absent.status_code == 403


def test_what_was_written_for_one_caller_is_not_given_to_another(world: World) -> None:
    """Row 22."""
    path = "/namespaces/{team_a}/pods/train-2/schedulerlog?detail=full"
    everything, redacted = world.get("all", path), world.get("alice", path)
    assert OTHERS_POD in everything.text
    assert OTHERS_POD not in redacted.text
    assert everything.headers["etag"] != redacted.headers["etag"]
    for answer in (everything, redacted):
        assert "private" in answer.headers["cache-control"]
        assert "Authorization" in answer.headers["vary"]


def test_probes_and_metrics(world: World) -> None:
    """Rows 71 to 73."""
    get = world.client.get
    assert [get(path).status_code for path in ("/healthz", "/readyz", "/metrics", "/docs")] == [200, 200, 401, 401]
    assert get("/readyz").json()["parts"] is None
    assert get("/readyz", headers=world.headers["prom"]).json()["parts"]
    metrics = [get("/metrics", headers=world.headers[name]) for name in ("prom", "alice")]
    assert [answer.status_code for answer in metrics] == [200, 403]
    assert OTHERS_POD not in metrics[0].text


def test_a_node_shows_amounts_of_pods_that_the_caller_may_not_read(world: World) -> None:
    """Rows 44 and 45."""
    hidden = world.get("nodes", "/nodes/{node}/occupancy").json()
    assert (hidden["pods"], hidden["other_pods"]) == ([], 2)
    assert hidden["devices"][0]["memory_held_mib"] == 40_000
    assert [each["memory_mib"] for each in hidden["devices"][0]["held_by"]] == [20_000, 20_000]
    assert "train-0" not in str(hidden)
    own = world.get("nodes-lead", "/nodes/{node}/occupancy").json()
    assert ([pod["name"] for pod in own["pods"]], own["other_pods"]) == (["train-0"], 1)
    assert sorted(each["name"] for each in own["devices"][0]["held_by"]) == ["", "train-0"]
    assert OTHERS_POD not in str(own)


def test_evidence_shows_the_lines_about_pods_that_the_caller_may_read(world: World) -> None:
    """Row 48: lead may list the pods of its namespace, alice may read them, and both see the numbers."""
    for caller, path in (("lead", "/findings?namespace={team_a}"), ("alice", POD + "/findings")):
        found = {item["node"]: item for item in world.get(caller, path).json()["items"]}
        shared, logged = found[world.node], found[f"{world.node}-b"]
        assert shared["evidence"] == [f"{world.team_a}/train-0 holds 20000 MiB", "a pod of another namespace"]
        assert shared["evidence_pods"] == [f"{world.team_a}/train-0", ""]
        assert shared["numbers"]
        assert logged["evidence"] == ["2 lines, for callers who may list the pods of all namespaces"]


def test_who_may_read_all_pods_sees_their_names(world: World) -> None:
    assert OTHERS_POD in world.get("all", "/namespaces/{team_a}/pods/train-2/schedulerlog?detail=full").text
    assert OTHERS_POD in world.get("all", "/findings?namespace={team_a}").text


def test_a_search_counts_the_own_namespace_alone(world: World) -> None:
    """Rows 31, 36 and 37."""
    assert world.get("lead", "/schedulerlogs?namespace={team_a}").headers["x-total-count"] == "3"
    for words in (f"namespace:{world.team_b}", "*", OTHERS_POD, f'"{world.team_b}"'):
        found = world.get("lead", f"/schedulerlogs?namespace={{team_a}}&q={words}")
        assert found.status_code in (200, 400)
        assert {item["namespace"] for item in found.json().get("items", [])} <= {world.team_a}


def test_a_continue_token_is_of_who_got_it(world: World) -> None:
    """Row 38."""
    path = "/schedulerlogs?namespace={team_a}&limit=1"
    token = world.get("lead", path).headers["x-continue"]
    assert world.get("lead", f"{path}&continue={token}").status_code == 200
    assert world.get("all", f"{path}&continue={token}").status_code == 400
    assert world.get("bob", f"{path}&continue={token}").status_code == 403


def test_rights_are_taken_and_given_within_seconds(world: World) -> None:
    """Rows 39, 52 and 53."""
    path = "/schedulerlogs?namespace={team_a}&limit=1"

    def status() -> int:
        return world.get("revoked", path).status_code

    assert status() == 403
    binding = world.callers.grant("revoked", rule(PODS, "list"), namespace=world.team_a)
    eventually(lambda: status() == 200, "the right is not taken up")
    token = world.get("revoked", path).headers["x-continue"]
    world.callers.delete(binding)
    eventually(lambda: status() == 403, "the right is kept")
    assert world.get("revoked", f"{path}&continue={token}").status_code == 403


def test_a_deleted_account_is_refused(world: World) -> None:
    """Row 9."""
    assert world.get("leaving", POD + "/schedulerlog").status_code == 200
    world.callers.delete_account("leaving")
    eventually(lambda: world.get("leaving", POD + "/schedulerlog").status_code == 401, "its token is still good")


def test_a_search_does_not_show_how_much_others_have(world: World) -> None:
    """Row 50."""
    paths = ("/schedulerlogs?namespace={team_a}&limit=1", "/schedulerlogs?namespace={team_a}&q=fit")

    def answers() -> tuple[list[tuple[str, Json]], float]:
        began = time.perf_counter()
        found = [world.get("lead", path) for path in paths]
        # The token of a page holds the time of its search.
        bodies = [each.json() | {"continue": None} for each in found]
        return [(each.headers["x-total-count"], body) for each, body in zip(found, bodies, strict=True)], (
            time.perf_counter() - began
        )

    before, quickest = answers()[0], min(answers()[1] for _ in range(10))
    one = an_attempt(f"{world.team_b}/{OTHERS_POD}", started_at=START).model_copy(update={"cluster": world.cluster})
    document = lines_of(one)
    world.filling.bulk(b"".join(document.replace(one.attempt_id.encode(), b"%032x" % each) for each in range(10_000)))
    assert int(world.get("bob", "/schedulerlogs?namespace={team_b}").headers["x-total-count"]) > 10_000
    assert answers()[0] == before
    assert min(answers()[1] for _ in range(10)) < 2 * quickest + 0.02


WATCH = "/schedulerlogs?watch=true&sendInitialEvents=false&timeoutSeconds=60&namespace={team_a}"


def test_a_watch_shows_the_own_namespace_alone(world: World) -> None:
    """Rows 61 and 63: as lines and as Server-Sent Events, from now and from a place that others were given."""
    minutes = timedelta(minutes=1)
    own, other = f"{world.team_a}/train-0", f"{world.team_b}/{OTHERS_POD}"
    with world.watch("all", WATCH.replace("&namespace={team_a}", "")) as events:
        world.publish(other, after=minutes)
        given = next(events)["object"]["metadata"]["resourceVersion"]
    sse = {"Accept": "text/event-stream"}
    with world.watch("lead", WATCH) as lines, world.watch("lead", WATCH, **sse, **{"Last-Event-ID": given}) as resumed:
        world.publish(other, own, other, after=2 * minutes)
        world.publish(own, after=3 * minutes)
        for events in (lines, resumed):
            shown = [next(events), next(events)]
            assert {event["object"]["namespace"] for event in shown} == {world.team_a}
            assert OTHERS_POD not in str(shown)
    for caller, path in (
        ("lead", "/schedulerlogs?watch=true"),
        ("lead", "/schedulerlogs?watch=true&namespace={team_b}"),
        ("lead", "/pending?watch=true&namespace={team_b}"),
        ("alice", OTHER + "/schedulerlog?watch=true"),
        ("alice", "/schedulerlogs?watch=true&namespace={team_a}"),
    ):
        assert world.get(caller, path, **{"Last-Event-ID": given}).status_code == 403, path


def test_a_watch_ends_within_ten_seconds_of_a_revoked_right(world: World) -> None:
    """Row 62."""
    binding = world.callers.grant("ending", rule(PODS, "list"), namespace=world.team_a)
    eventually(lambda: world.get("ending", "/pods?namespace={team_a}").status_code == 200, "the right is not taken up")
    with world.watch("ending", WATCH) as events:
        world.publish(f"{world.team_a}/train-1", after=timedelta(minutes=4))
        assert next(events)["type"] == "ADDED"
        world.callers.delete(binding)
        revoked_at = time.monotonic()
        (last,) = list(events)
        assert time.monotonic() - revoked_at < 10
    assert (last["type"], last["object"]["code"], last["object"]["reason"]) == ("ERROR", 403, "Forbidden")


def test_one_caller_can_not_have_all_watches(world: World) -> None:
    """Row 64: of 30 a caller has 3."""
    with ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(world.watch("lead", WATCH))
        refused = world.get("lead", WATCH)
        assert (refused.status_code, "retry-after" in refused.headers) == (429, True)
        assert world.get("bob", "/pending?watch=true&timeoutSeconds=1&namespace={team_b}").status_code == 200
    eventually(lambda: world.get("lead", WATCH.replace("=60", "=1")).status_code == 200, "they are still counted")
