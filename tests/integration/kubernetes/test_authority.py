"""Rights to read: one API that asks a real API server, callers with real tokens and Roles, and a real index.

The rows are those of the acceptance matrix; docs/security-tests.md says which test shows which row.
"""

import json
import re
import socket
import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from functools import partial

import pytest

from api.http.sealing import SEAL, decode_base64, encode_base64
from dev.embedded.control_plane import ControlPlane
from schemas.json_types import Json
from tests.support.backends import Addresses
from tests.support.control_plane.callers import build_rule
from tests.support.harness.index_filling import an_attempt, write_lines
from tests.support.harness.tenants import (
    ACCESS_REVIEW,
    OTHERS_POD,
    PODS,
    START,
    Tenants,
    tenants,
)
from tests.support.waiting import await_end, eventually


@pytest.fixture(scope="module")
def world(
    control_plane: ControlPlane, backends: Addresses, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Tenants]:
    with tenants(control_plane, backends, tmp_path_factory.mktemp("tenants")) as world:
        yield world


POD = "/namespaces/{team_a}/pods/train-0"
OTHER = "/namespaces/{team_b}/pods/" + OTHERS_POD
LISTS = (
    "pending?", "pending?group_by=obstacle&", "pods?", "pods?state=waiting&", "suggestions?",
    "refusals?device=GPU-{node}&", "schedulerlogs?group_by=node&", "reports/failures?", "reports/failures?format=html&",
    *(f"trends?by={name}&" for name in ("pool", "model", "namespace", "workload", "queue")),
)  # fmt: skip
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
        (19, "alice", pod_path + suffix, status)
        for pod_path, status in ((POD, 200), (OTHER, 403))
        for suffix in (
            "/schedulerlog/history",
            "/scores",
            "/diagnosis",
            "/findings",
            "/occupancy",
            "/observations",
            "/groups",
            "/suggestions",
        )
    ),
    (19, "alice", POD + "/comparison?nodes={node},no-such-node", 404),
    (19, "alice", OTHER + "/comparison?nodes={node},no-such-node", 403),
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
    (79, "lister", "/schedulerlogs?namespace={team_a}", 200),
    (79, "lister", POD + "/schedulerlog", 403),
    (42, "nodes", "/nodes/{node}", 200),
    (42, "nodes", "/nodes/{node}/occupancy", 200),
    (43, "alice", "/nodes/{node}", 403),
    (43, "alice", "/nodes/{node}/occupancy", 403),
    (42, "nodes-lead", "/nodes", 200),
    (42, "nodes", "/nodes", 403),
    (46, "alice", POD + "/schedulerlog?detail=full&node={node}", 200),
    (47, "alice", "/namespaces/{team_a}/pods/train-2/schedulerlog?detail=full", 200),
    *(
        (47, "alice", f"/namespaces/{{team_a}}/pods/{name}{suffix}", 200)
        for name in ("named-1", "named-2", "train-2")
        for suffix in ("/schedulerlog", "/schedulerlog?detail=full", "/schedulerlog/history", "/diagnosis", "/groups")
    ),
    (47, "alice", POD + "/observations", 200),
    (47, "lead", "/schedulerlogs?namespace={team_a}", 200),
    (47, "lead", "/schedulerlogs?namespace={team_a}&group_by=workload", 200),
    *((47, "lead", f"/pending?namespace={{team_a}}&group_by={name}", 200) for name in ("pod", "workload", "obstacle")),
    (47, "lead", "/pods?namespace={team_a}&state=waiting", 200),
    (47, "lead", "/suggestions?namespace={team_a}", 200),
    (48, "lead", "/findings?namespace={team_a}&finding=Overcommitted", 200),
    *(
        (81, *row)
        for row in (
            ("alice", "/alerts?namespace={team_a}", 403),
            ("lead", "/alerts?namespace={team_a}", 200),
            ("lead", "/alerts?namespace={team_b}", 403),
            ("lead", "/alerts", 403),
            ("all", "/alerts", 200),
        )
    ),
    *(
        (82, *row)
        for row in (
            ("alice", "/namespaces/{team_a}/workloads/job/train", 403),
            ("lead", "/namespaces/{team_b}/workloads/job/train", 403),
            ("lead", "/namespaces/{team_b}/workloads/job/does-not-exist", 403),
        )
    ),
    *(
        (84, *row)
        for row in (
            ("alice", POD + "/suggestions", 200),
            ("alice", OTHER + "/suggestions", 403),
            ("alice", "/suggestions?namespace={team_a}", 403),
            ("lead", "/suggestions?namespace={team_a}", 200),
            ("lead", "/suggestions?namespace={team_b}", 403),
        )
    ),
]


@pytest.mark.parametrize(("row", "caller", "path", "status"), ROWS)
def test_a_row_of_the_matrix(world: Tenants, row: int, caller: str, path: str, status: int) -> None:
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
    world: Tenants, row: int, caller: str, method: str, path: str, headers: dict[str, str], statuses: set[int]
) -> None:
    names = {
        "team_a": world.team_a,
        "team_b": world.team_b,
        "token": world.headers["alice"]["Authorization"].removeprefix("Bearer "),
        "tag": world.get("bob", OTHER + "/schedulerlog").headers["etag"],
    }
    # Without what is remembered of the caller: a review would be seen.
    has_no_review = row in (2, 23, 24)
    header = world.renew_header(caller) if has_no_review and caller != "nobody" else world.headers[caller]
    world.reviews.reset()
    sent = header | {name: value.format(**names) for name, value in headers.items()}
    answer = world.client.request(method, path.format(**names), headers=sent)
    assert answer.status_code in statuses, f"row {row}: {answer.status_code} {answer.text}"
    if answer.status_code == 401:
        assert answer.headers["www-authenticate"].split()[0] == "Bearer"
    if method == "HEAD":
        assert not answer.content
    if has_no_review:
        assert world.list_reviews(ACCESS_REVIEW) == []
    if caller == "nobody":
        assert world.reviews.passed == []


def test_a_pod_that_is_not_there_is_refused_as_one_that_is(world: Tenants) -> None:
    """Rows 13 and 14: but for the name that was asked for, byte for byte."""
    there, absent = (
        world.get("alice", f"/namespaces/{{team_b}}/pods/{name}/schedulerlog") for name in (OTHERS_POD, "no-such-pod1")
    )
    assert there.text.replace(OTHERS_POD, "no-such-pod1") == absent.text
    assert there.status_code == absent.status_code == 403


def test_what_was_written_for_one_caller_is_not_given_to_another(world: Tenants) -> None:
    """Row 22."""
    path = "/namespaces/{team_a}/pods/train-2/schedulerlog?detail=full"
    everything, redacted = world.get("all", path), world.get("alice", path)
    assert OTHERS_POD in everything.text
    assert OTHERS_POD not in redacted.text
    assert everything.headers["etag"] != redacted.headers["etag"]
    for answer in (everything, redacted):
        assert "private" in answer.headers["cache-control"]
        assert "Authorization" in answer.headers["vary"]


@pytest.mark.parametrize("root", ["/ui/pods/{}/{}", "/embed/pod/{}/{}"])
@pytest.mark.parametrize("name", ["train-0", "train-2", "named-1", "named-2"])
def test_a_page_shows_what_its_caller_may_read(world: Tenants, root: str, name: str) -> None:
    """Rows 13, 19 and 47 by the cookie of a browser, which counts for pages alone."""
    token = world.headers["alice"]["Authorization"].removeprefix("Bearer ")
    cookie = {"Cookie": f"schedulerlog_token={token}"}
    page = world.client.get(root.format(world.team_a, name), headers=cookie)
    assert page.status_code == 200
    assert name in page.text
    assert OTHERS_POD not in page.text
    assert world.team_b not in page.text
    other, absent = (
        world.client.get(root.format(world.team_b, pod), headers=cookie) for pod in (OTHERS_POD, "no-such-pod1")
    )
    assert other.status_code == absent.status_code == 403
    # Each page has the time of its making.
    bodies = [re.sub(r"2\d{3}-[\d-]+[T ][\d:.]+Z?", "", answer.text) for answer in (other, absent)]
    assert bodies[0].replace(OTHERS_POD, "no-such-pod1") == bodies[1]
    assert world.client.get(root.format(world.team_a, name), headers={"Accept": "text/html"}).status_code != 200


def test_parts_and_lists_of_pages_need_the_rights_of_the_answers(world: Tenants) -> None:
    """Rows 19, 30, 32, 41 and 43 to 45, on pages."""

    def get_status(caller: str, path: str) -> tuple[int, str]:
        answer = world.client.get("/ui" + world.fill_names(path), headers=world.headers[caller])
        return answer.status_code, answer.text

    parts = ("changes", "scores", "history", "records")
    for part in parts:
        for name in ("train-0", "named-1", "named-2"):
            code, text = get_status("alice", f"/pods/{{team_a}}/{name}/{part}")
            assert (code, OTHERS_POD in text) == (200, False), (part, name)
        assert get_status("alice", f"/pods/{{team_b}}/{OTHERS_POD}/{part}")[0] == 403, part
    for path in (
        "/pending",
        "/pending.csv",
        "/trends",
        "/trends.csv",
        "/report",
        "/report/file",
        "/search",
        "/findings",
    ):
        code, text = get_status("lead", path + "?namespace={team_a}")
        assert (code, OTHERS_POD in text, world.team_b in text) == (200, False, False), path
        assert get_status("lead", path + "?namespace={team_b}")[0] == 403, path
    code, text = get_status("nodes-lead", "/nodes/{node}")
    assert (code, OTHERS_POD in text, "train-0" in text) == (200, False, True)
    assert [get_status("alice", path)[0] for path in ("/nodes", "/nodes/{node}")] == [403, 403]


def test_an_attempt_is_read_by_who_may_read_its_pod(world: Tenants) -> None:
    """Rows 14 and 19: its id shows nobody whether there is one, nor does an attempt beside it."""
    ids = {name: world.get("all", path + "/schedulerlog?detail=full").json()["detail"]["attempt_id"]
             for name, path in (("own", POD), ("other", OTHER))}  # fmt: skip
    ours, other, absent = ids["own"], ids["other"], "f" * 32
    assert world.get("alice", f"/attempts/{ours}").status_code == 200
    refusals = [world.get("alice", f"/attempts/{id_}") for id_ in (other, absent)]
    assert [refusal.status_code for refusal in refusals] == [403, 403]
    assert refusals[0].text.replace(other, absent) == refusals[1].text
    assert world.get("alice", f"/attempts/{ours}/comparison?with={ours}").status_code == 200
    assert [world.get("alice", f"/attempts/{ours}/comparison?with={id_}").status_code for id_ in (other, absent)] == [
        403,
        403,
    ]
    for path in (f"/attempts/{ours}/cluster-file", "/cluster-file", "/nodes", "/schedulers"):
        assert world.get("alice", path).status_code == 403, path
    # Another pod's attempt under the name of one's own.
    for part in ("diagnosis", "scores", "groups", "suggestions"):
        statuses = {world.get("alice", f"{POD}/{part}?attempt={id_}").status_code for id_ in (other, absent)}
        assert statuses == {403}, part
    clusters = world.get("alice", "/clusters").json()["items"]
    assert {cluster["name"] for cluster in clusters} == {world.cluster}


def test_a_pod_that_does_not_exist_is_simulated_for_who_may_read_it(world: Tenants) -> None:
    """Row 20: the one path that takes a body; nothing is written."""
    manifest = "{kind: Pod, metadata: {name: new, namespace: %s}, spec: {}}"
    statuses = [
        world.client.post("/api/v1/simulate", content=manifest % team, headers=world.headers[caller]).status_code
        for caller, team in (("nobody", world.team_a), ("alice", world.team_b))
    ]
    assert statuses == [401, 403]


def test_the_pods_that_start_are_counted_for_who_may_read_such_a_pod(world: Tenants) -> None:
    """Row 83."""
    manifest = "{kind: Pod, metadata: {name: new, namespace: %s}, spec: {}}"
    statuses = [
        world.client.post("/api/v1/capacity", content=manifest % team, headers=world.headers[caller]).status_code
        for caller, team in (("nobody", world.team_a), ("alice", world.team_b), ("lead", world.team_b))
    ]
    assert statuses == [401, 403, 403]


def test_the_report_counts_the_use_of_the_namespaces_that_the_caller_may_read(world: Tenants) -> None:
    """Row 85."""
    path = "/reports/failures?namespace={team_%s}"
    usage = world.get("lead", path % "a").json()["usage"]
    assert {entry["namespace"] for entry in usage} <= {world.team_a}
    refused = [world.get("lead", name).status_code for name in ("/reports/failures", path % "b")]
    assert refused == [403, 403]
    assert world.team_b in world.get("all", "/reports/failures").text


def test_the_sums_of_nodes_name_the_namespaces_that_the_caller_may_read(world: Tenants) -> None:
    """Row 86: the others are one amount without a name, so that their number does not show either."""
    nodes = {item["node"]: item for item in world.get("nodes-lead", "/nodes").json()["items"]}
    assert [entry["namespace"] for entry in nodes[world.node]["held"]] == ["", world.team_a]
    assert world.get("alice", "/nodes").status_code == 403


def test_probes_and_metrics(world: Tenants) -> None:
    """Rows 71 to 73."""
    get = world.client.get
    assert [get(path).status_code for path in ("/healthz", "/readyz", "/metrics", "/docs")] == [200, 200, 401, 401]
    assert get("/readyz").json()["parts"] is None
    assert get("/readyz", headers=world.headers["prom"]).json()["parts"]
    metrics = [get("/metrics", headers=world.headers[name]) for name in ("prom", "alice")]
    assert [answer.status_code for answer in metrics] == [200, 403]
    assert OTHERS_POD not in metrics[0].text


def test_a_node_shows_amounts_of_pods_that_the_caller_may_not_read(world: Tenants) -> None:
    """Rows 44 and 45."""
    hidden = world.get("nodes", "/nodes/{node}/occupancy").json()
    assert (hidden["pods"], hidden["other_pods"]) == ([], 2)
    assert hidden["devices"][0]["memory_held_mib"] == 40_000
    assert [holder["memory_mib"] for holder in hidden["devices"][0]["held_by"]] == [20_000, 20_000]
    assert "train-0" not in str(hidden)
    visible = world.get("nodes-lead", "/nodes/{node}/occupancy").json()
    assert ([pod["name"] for pod in visible["pods"]], visible["other_pods"]) == (["train-0"], 1)
    assert sorted(holder["name"] for holder in visible["devices"][0]["held_by"]) == ["", "train-0"]
    assert OTHERS_POD not in str(visible)


def test_evidence_shows_the_lines_about_pods_that_the_caller_may_read(world: Tenants) -> None:
    """Row 48: lead may list the pods of its namespace, alice may read them, and both see the numbers."""
    for caller, path in (("lead", "/findings?namespace={team_a}"), ("alice", POD + "/findings")):
        findings = {item["node"]: item for item in world.get(caller, path).json()["items"]}
        shared, logged = findings[world.node], findings[f"{world.node}-b"]
        assert shared["evidence"] == [f"{world.team_a}/train-0 holds 20000 MiB", "a pod of another namespace"]
        assert shared["evidence_pods"] == [f"{world.team_a}/train-0", ""]
        assert shared["numbers"]
        assert logged["evidence"] == ["2 lines, for callers who may list the pods of all namespaces"]


def test_who_may_read_all_pods_sees_their_names(world: Tenants) -> None:
    """Row 47: what hides them is the caller's right."""
    pod = "/namespaces/{team_a}/pods/"
    for path in (
        pod + "train-2/schedulerlog?detail=full",
        *(
            pod + name + suffix
            for name in ("named-1", "named-2")
            for suffix in ("/schedulerlog", "/schedulerlog/history")
        ),
        pod + "named-1/diagnosis",
        POD + "/observations",
        "/schedulerlogs?namespace={team_a}",
        "/findings?namespace={team_a}",
    ):
        assert OTHERS_POD in world.get("all", path).text, path


def test_the_words_around_a_hidden_name_are_shown(world: Tenants) -> None:
    """Rows 47 and 49: a reference is hidden, and no word that is like a name."""
    path = "/namespaces/{team_a}/pods/%s/schedulerlog?detail=full"
    bound, failed = (world.get("alice", path % name).json() for name in ("named-1", "named-2"))
    hidden = "a pod of another namespace"
    words = f"node {world.node} is held by pod {hidden}: 3/8 devices, dial tcp: i/o timeout"
    assert bound["bind"]["summary"] == bound["detail"]["bind"]["error"] == words
    our_pod = f"{world.team_a}/train-0"
    assert failed["filter"]["summary"] == f"no victim: {hidden}, {our_pod} and /{hidden} stay"
    assert failed["detail"]["scheduler_message"] == f"preempted by {hidden}"
    findings = world.get("lead", "/findings?namespace={team_a}&finding=Overcommitted").json()["items"]
    (similar,) = (finding for finding in findings if finding["node"] == f"{world.node}-c")
    assert similar["evidence"] == [f"{world.team_a}/train-0-secret holds 10 MiB", hidden]


def test_device_rows_have_the_numbers_and_no_pod(world: Tenants) -> None:
    """Row 46."""
    answer = world.get("alice", POD + "/schedulerlog?detail=full&node={node}").json()
    assert [device["node"] for device in answer["devices"]] == [world.node] * 2
    assert all(device["memory_total_mib"] and device["memory_used_mib"] for device in answer["devices"])
    fields = {"node", "container", "uuid", "verdict", "model", "numa", "device_index", "checks"}
    assert {
        name for device in answer["devices"] for name in device if name.rsplit("_")[-1] not in ("mib", "percent")
    } <= (fields | {"slots_total", "slots_used"})


def test_a_search_counts_the_own_namespace_alone(world: Tenants) -> None:
    """Rows 31, 36 and 37."""
    assert world.get("lead", "/schedulerlogs?namespace={team_a}").headers["x-total-count"] == "5"
    for words in (f"namespace:{world.team_b}", "*", OTHERS_POD, f'"{world.team_b}"'):
        answer = world.get("lead", f"/schedulerlogs?namespace={{team_a}}&q={words}")
        assert answer.status_code in (200, 400)
        assert {item["namespace"] for item in answer.json().get("items", [])} <= {world.team_a}


def test_a_continue_token_is_of_who_got_it(world: Tenants) -> None:
    """Rows 38 and 40: without HTTPS there is no key that seals it, and its fields are checked as parameters are."""
    path = "/schedulerlogs?namespace={team_a}&limit=1"
    token = world.get("lead", path).headers["x-continue"]
    version, scope, position = json.loads(zlib.decompress(SEAL.decrypt(decode_base64(token) or b"") or b""))
    changes: list[Json] = [{"pit": "_all"}, {"since": "rubbish"}, {"sort": [10**30]}]
    for change in changes:
        payload = zlib.compress(json.dumps([version, scope, position | change]).encode())
        forged = encode_base64(SEAL.encrypt(payload))
        assert world.get("lead", f"{path}&continue={forged}").status_code == 400, change
    assert world.get("lead", f"{path}&continue={token}").status_code == 200
    assert world.get("all", f"{path}&continue={token}").status_code == 400
    assert world.get("bob", f"{path}&continue={token}").status_code == 403


def test_rights_are_taken_and_given_within_seconds(world: Tenants) -> None:
    """Rows 39, 52 and 53."""
    path = "/schedulerlogs?namespace={team_a}&limit=1"

    def get_status() -> int:
        return world.get("revoked", path).status_code

    assert get_status() == 403
    binding = world.callers.grant("revoked", build_rule(PODS, "list"), namespace=world.team_a)
    eventually(lambda: get_status() == 200, "the right is not taken up")
    token = world.get("revoked", path).headers["x-continue"]
    world.callers.delete(binding)
    eventually(lambda: get_status() == 403, "the right is kept")
    assert world.get("revoked", f"{path}&continue={token}").status_code == 403


def test_a_deleted_account_is_refused(world: Tenants) -> None:
    """Row 9: the account, and the pod that a token is bound to."""
    bound = world.callers.build_header_of_pod("leaving-pod", "holder")
    log = POD + "/schedulerlog"
    assert world.get_with(bound, log).status_code == world.get("leaving", log).status_code == 200
    world.callers.delete_account("leaving")
    world.callers.delete_pod("holder")
    deleted_at = time.monotonic()
    for headers in (world.headers["leaving"], bound):
        answers = partial(world.get_with, headers, log)
        last_read_at, _ = await_end(answers, lambda answer: answer.status_code == 401)
        assert last_read_at - deleted_at < 25


def test_a_search_does_not_show_how_much_others_have(world: Tenants) -> None:
    """Row 50."""
    paths = ("/schedulerlogs?namespace={team_a}&limit=1", "/schedulerlogs?namespace={team_a}&q=fit")

    def fetch_answers() -> tuple[list[tuple[str, Json]], float]:
        began = time.perf_counter()
        answers = [world.get("lead", path) for path in paths]
        # The token of a page holds the time of its search.
        bodies = [answer.json() | {"continue": None} for answer in answers]
        return [(answer.headers["x-total-count"], body) for answer, body in zip(answers, bodies, strict=True)], (
            time.perf_counter() - began
        )

    before, quickest = fetch_answers()[0], min(fetch_answers()[1] for _ in range(10))
    attempt = an_attempt(f"{world.team_b}/{OTHERS_POD}", started_at=START).model_copy(update={"cluster": world.cluster})
    document = write_lines(attempt)
    world.filling.send_bulk(
        b"".join(document.replace(attempt.attempt_id.encode(), b"%032x" % id_) for id_ in range(10_000))
    )
    assert int(world.get("bob", "/schedulerlogs?namespace={team_b}").headers["x-total-count"]) > 10_000
    assert fetch_answers()[0] == before
    # Ten thousand more would take longer each time; other work, and the merges of OpenSearch, come to an end.
    eventually(lambda: fetch_answers()[1] < 2 * quickest + 0.02)


WATCH = "/schedulerlogs?watch=true&sendInitialEvents=false&timeoutSeconds=60&namespace={team_a}"


def test_a_watch_shows_the_own_namespace_alone(world: Tenants) -> None:
    """Rows 61 and 63: as lines and as Server-Sent Events, from now and from a place that others were given."""
    minutes = timedelta(minutes=1)
    our_pod, other = f"{world.team_a}/train-0", f"{world.team_b}/{OTHERS_POD}"
    with world.watch("all", WATCH.replace("&namespace={team_a}", "")) as events:
        world.publish(other, after=minutes)
        version = next(events)["object"]["metadata"]["resourceVersion"]
    sse = {"Accept": "text/event-stream"}
    with (
        world.watch("lead", WATCH) as lines,
        world.watch("lead", WATCH, **sse, **{"Last-Event-ID": version}) as resumed,
    ):
        world.publish(other, our_pod, other, after=2 * minutes)
        world.publish(our_pod, after=3 * minutes)
        for events in (lines, resumed):
            received = [next(events), next(events)]
            assert {event["object"]["namespace"] for event in received} == {world.team_a}
            assert OTHERS_POD not in str(received)
    for caller, path in (
        ("lead", "/schedulerlogs?watch=true"),
        ("lead", "/schedulerlogs?watch=true&namespace={team_b}"),
        ("lead", "/pending?watch=true&namespace={team_b}"),
        ("alice", OTHER + "/schedulerlog?watch=true"),
        ("alice", "/schedulerlogs?watch=true&namespace={team_a}"),
    ):
        assert world.get(caller, path, **{"Last-Event-ID": version}).status_code == 403, path


def test_a_watch_ends_with_a_revoked_right(world: Tenants) -> None:
    """Row 62."""
    binding = world.callers.grant("ending", build_rule(PODS, "list"), namespace=world.team_a)
    eventually(lambda: world.get("ending", "/pods?namespace={team_a}").status_code == 200, "the right is not taken up")
    with world.watch("ending", WATCH) as events:
        world.publish(f"{world.team_a}/train-1", after=timedelta(minutes=4))
        assert next(events)["type"] == "ADDED"
        world.callers.delete(binding)
        revoked_at = time.monotonic()
        (last,) = list(events)
        # By itself it ends after a minute. The ten seconds are those of test_streams.py, whose clock is the test's.
        assert time.monotonic() - revoked_at < 40
    assert (last["type"], last["object"]["code"], last["object"]["reason"]) == ("ERROR", 403, "Forbidden")


def test_one_caller_can_not_have_all_watches(world: Tenants) -> None:
    """Row 64: of 30 a caller has 3."""
    with ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(world.watch("lead", WATCH))
        refused = world.get("lead", WATCH)
        assert (refused.status_code, "retry-after" in refused.headers) == (429, True)
        assert world.get("bob", "/pending?watch=true&timeoutSeconds=1&namespace={team_b}").status_code == 200
    eventually(lambda: world.get("lead", WATCH.replace("=60", "=1")).status_code == 200, "they are still counted")


def test_a_slow_reader_is_cut_off(world: Tenants) -> None:
    """Row 64: who takes nothing for ten seconds, while others are answered."""
    address = world.client.base_url
    path = f"/api/v1/namespaces/{world.team_a}/pods/wide/schedulerlog?watch=true&timeoutSeconds=300"
    lines = [f"GET {path} HTTP/1.1", "Host: localhost", *(f"{k}: {v}" for k, v in world.headers["lead"].items())]
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect((address.host, address.port))
        slow.sendall("\r\n".join([*lines, "", ""]).encode())
        assert slow.recv(8) == b"HTTP/1.1"
        # Together far more than the kernel keeps: 300 KB each.
        nodes = [f"node-{number:05}" for number in range(3000)]
        attempts = (
            an_attempt(f"{world.team_a}/wide", started_at=START + timedelta(minutes=10, seconds=second), nodes=nodes)
            for second in range(40)
        )
        world.filling.publish(*(attempt.model_copy(update={"cluster": world.cluster}) for attempt in attempts))

        def cut_off() -> bool:
            assert world.get("alice", POD + "/schedulerlog").status_code == 200
            metrics = world.client.get("/metrics", headers=world.headers["prom"]).text
            return "schedulerlog_api_watches_cut_off_total 1.0" in metrics

        eventually(cut_off, "it is still served")


def test_no_token_and_no_query_is_in_a_log_line_a_metric_or_an_error(world: Tenants) -> None:
    """Row 75."""
    token = world.headers["alice"]["Authorization"].removeprefix("Bearer ")
    secret = f"q=secret-words&access_token={token}"
    answers = [
        world.client.get(f"{path}{'&' if '?' in path else '?'}{secret}", headers={"Authorization": value})
        for path in (LOG, OTHERS_LOG, "/no/such/path", "/api/v1/schedulerlogs?namespace={team_a}")
        for value in (f"Bearer {token}x", f"Basic {token}", f"Bearer {token}")
        for path in [world.fill_names(path)]
    ]
    assert {answer.status_code for answer in answers} >= {400, 401}
    metrics = world.client.get("/metrics", headers=world.headers["prom"]).text
    log = world.log.read_text()
    for text in (*(answer.text for answer in answers), metrics, log):
        assert token.rpartition(".")[2] not in text
        assert "secret-words" not in text
    assert [status for status in (401, 403) if f'status="{status}"' not in metrics] == []
    assert "train-0" not in metrics
    assert "Traceback" not in log
