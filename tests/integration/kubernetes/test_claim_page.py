"""A claim that the real kube-scheduler refuses, from its event to the page, searches, trends and Dashboards."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from playwright.sync_api import Browser, Page

from deploy.dashboards.overview import export
from dev.embedded.control_plane import ControlPlane
from schemas.codec.records import decode
from schemas.events import NodeObserved
from schemas.json_types import Json
from schemas.topics import NODES
from tests.support.builders.claims import DRIVER, a_claim, a_class, a_device, a_request, a_slice
from tests.support.chromium import chromium
from tests.support.control_plane.objects import create, created_namespace, created_nodes
from tests.support.control_plane.plain_scheduler import SCHEDULER, a_pod
from tests.support.control_plane.scheduled_pods import await_result, delete_objects
from tests.support.harness.api_process import Served, serving
from tests.support.harness.forked import Forked
from tests.support.harness.pipeline_process import Pipeline, pipeline
from tests.support.panel_search import Imported, query_of, search_body
from tests.support.reused_backends import reused_backends
from tests.support.waiting import eventually, until

NAMESPACE: Final = "vision"
POD: Final = f"{NAMESPACE}/train-0"
CLASS: Final = "gpu.nvidia.com"
BIG: Final = f"device.capacity['{DRIVER}'].memory.compareTo(quantity('80Gi')) >= 0"
DRA: Final = "/apis/resource.k8s.io/v1"
CLAIMS: Final = f"{DRA}/namespaces/{NAMESPACE}/resourceclaims"
PICTURE: Final = Path("docs/pictures/claim.png")
TEXT: Final = PICTURE.with_suffix(".txt")
"""Text of the obstacle in the picture: it is compared, because letters look different on every machine."""
TAKES_PICTURE: Final = os.environ.get("SCHEDULERLOG_TEST_PICTURE") == "1"
_MORE_NODES: Final = re.compile(r"\d+ of \d+ nodes")


@dataclass(frozen=True, slots=True)
class World:
    """A pod whose claim no device meets: one node has smaller devices, one is full, and one has tainted devices."""

    api: Served
    running: Pipeline


def a_node(name: str) -> Json:
    amounts = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    return {
        "metadata": {"name": name, "labels": {"team": NAMESPACE}},
        "spec": {},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def list_slices() -> list[Json]:
    xid = [{"key": f"{DRIVER}/xid", "value": "79", "effect": "NoSchedule"}]
    large = {"productName": "NVIDIA H100 80GB HBM3"}
    return [
        a_slice(*(a_device(f"gpu-{n}", "46068Mi", {"productName": "NVIDIA A40"}) for n in range(4)), node="gpu-a40-0"),
        a_slice(*(a_device(f"gpu-{n}", "80Gi", large) for n in range(2)), node="gpu-h100-0"),
        a_slice(*(a_device(f"gpu-{n}", "80Gi", large, taints=xid) for n in range(2)), node="gpu-h100-1"),
    ]


def a_claiming_pod(name: str, claim: str) -> Json:
    reference = [{"name": "gpu", "resourceClaimName": claim}]
    pod = a_pod(name, resourceClaims=reference, nodeSelector={"team": NAMESPACE})
    pod["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    return pod


def create_claim(client: httpx.Client, name: str, **request: Any) -> None:
    claim = a_claim(a_request(BIG, device_class=CLASS, name="gpu", **request), name=name)
    create(client, CLAIMS, {"metadata": {"name": name}, "spec": claim["spec"]})


def fill(client: httpx.Client) -> None:
    """Let a pod take both devices of one node, and another one wait for a device as large."""
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
    create_claim(client, "llm", count=2)
    create(client, pods, a_claiming_pod("llm-0", "llm"))
    assert await_result(client, f"{pods}/llm-0").node == "gpu-h100-0"
    create_claim(client, "train")
    create(client, pods, a_claiming_pod("train-0", "train"))


def looks_at_taints_of_devices(cluster: ControlPlane) -> bool:
    """Tell whether the API server has the feature; kube-scheduler is of the same version."""
    with cluster.open_client() as client:
        metrics = client.get("/metrics").text
    enabled = r'^kubernetes_feature_enabled\{name="DRADeviceTaints",[^}]*\} 1$'
    return re.search(enabled, metrics, re.MULTILINE) is not None


def has_observed(running: Pipeline, node: str) -> bool:
    events = (decode(record.value, record.headers) for record in running.read_topic(NODES.name))
    return any(isinstance(event, NodeObserved) and event.node == node for event in events)


@pytest.fixture(scope="module")
def world(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    if not looks_at_taints_of_devices(control_plane):
        pytest.skip("the feature DRADeviceTaints is off: the pod would be placed on the tainted devices")
    folder = tmp_path_factory.mktemp("claims")
    control_plane.start_scheduler({"profiles": [{"schedulerName": SCHEDULER}]})
    nodes = [a_node(name) for name in ("gpu-a40-0", "gpu-h100-0", "gpu-h100-1")]
    with (
        reused_backends.taken() as servers,
        pipeline(folder, servers) as running,
        created_namespace(control_plane, NAMESPACE),
        created_nodes(control_plane, nodes),
        control_plane.open_client() as client,
        serving(
            servers.bootstrap_servers,
            servers.opensearch_url,
            SCHEDULERLOG_KUBECONFIG=str(control_plane.kubeconfig),
        ) as api,
        (folder / "kube-events.log").open("ab") as log,
    ):
        running.start_all()
        kubeconfig, kafka = str(control_plane.kubeconfig), servers.bootstrap_servers
        command = ["ingest", "kube-events", "--kubeconfig", kubeconfig, "--kafka", kafka]
        slices = list_slices()
        create(client, f"{DRA}/deviceclasses", a_class(f"device.driver == '{DRIVER}'", name=CLASS))
        for value in slices:
            create(client, f"{DRA}/resourceslices", value)
        watching = Forked(*command, "--event-reporters", SCHEDULER, stdout=log, stderr=log)
        try:
            eventually(lambda: has_observed(running, "gpu-h100-0"), "nothing watches the cluster")
            fill(client)
            until(lambda: read_detail(api), lambda detail: bool(detail.get("reconstruction")))
            yield World(api, running)
        finally:
            watching.terminate()
            watching.wait(timeout=120)
            names = [f"{DRA}/resourceslices/{value['metadata']['name']}" for value in slices]
            delete_objects(client, [*names, f"{DRA}/deviceclasses/{CLASS}"])


def read_detail(api: Served) -> Json:
    answer = api.get(f"/api/v1/namespaces/{NAMESPACE}/pods/train-0/schedulerlog", detail="full")
    return dict(answer.json()["detail"]) if answer.status_code == httpx.codes.OK else {}


def test_the_diagnosis_has_every_device_with_its_value_and_is_proved(world: World) -> None:
    answer = world.api.get(f"/api/v1/namespaces/{NAMESPACE}/pods/train-0/diagnosis").json()
    obstacle = answer["obstacle"]
    assert obstacle["code"] == "DevicesInUse"
    texts = {item["reason"]: [example["text"]["en"] for example in item["examples"]] for item in obstacle["devices"]}
    assert texts == {
        "DeviceInUse": [f"in use by claim {NAMESPACE}/llm, reserved for pod llm-0"],
        "DeviceTainted": [f"taint {DRIVER}/xid=79:NoSchedule is not tolerated"],
        "SelectorNotMatched": [f"claim {NAMESPACE}/train: selector #0: memory 46068Mi, asked at least 80Gi"],
    }
    assert {item["reason"]: item["devices"] for item in obstacle["devices"]} == {
        "DeviceInUse": 2,
        "DeviceTainted": 2,
        "SelectorNotMatched": 4,
    }
    assert answer["comparison"]["agreement"] == "equal"
    assert answer["comparison"]["scheduler_counts"]["cannot allocate all claims"] == 3


@pytest.mark.parametrize("reason", ["SelectorNotMatched", "DeviceInUse", "DeviceTainted"])
def test_searches_and_trends_have_each_reason(world: World, reason: str) -> None:
    def list_pods() -> list[str]:
        answer = world.api.get("/api/v1/schedulerlogs", namespace=NAMESPACE, reason=reason)
        items = answer.json()["items"] if answer.status_code == httpx.codes.OK else []
        return [f"{item['namespace']}/{item['name']}" for item in items]

    assert until(list_pods, lambda pods: pods == [POD])

    def list_series() -> dict[str, int]:
        answer = world.api.get("/api/v1/trends", by="reason", namespace=NAMESPACE)
        items = answer.json()["items"] if answer.status_code == httpx.codes.OK else []
        return {series["key"]: series["total"] for series in items}

    assert until(list_series, lambda series: series.get(reason, 0) >= 1)


def test_panels_and_saved_searches_of_dashboards_have_the_attempt(world: World) -> None:
    imported, now = Imported.read(export("https://schedulerlog.example")), datetime.now(UTC)
    since, until_ = (now - timedelta(hours=2)).isoformat(), (now + timedelta(hours=1)).isoformat()
    ours = {"term": {"namespace": NAMESPACE}}

    def search(pattern: Any, body: Json) -> Any:
        body = body | {"query": {"bool": {"filter": [body["query"], ours]}}}
        path = f"{world.running.servers.opensearch_url}/{pattern['attributes']['title']}/_search"
        answer = httpx.post(path, json=body, params={"ignore_unavailable": "true"}, timeout=60)
        # An index that is just made can't be searched yet.
        is_made = answer.status_code != httpx.codes.SERVICE_UNAVAILABLE
        return answer.raise_for_status().json() if is_made else {}

    def list_buckets(name: str) -> set[str]:
        panel = imported.objects["visualization", name]
        pattern = imported.get_pattern(panel)
        answer = search(pattern, search_body(panel, pattern, since, until_))
        # Before the first document there is no index, and no aggregation of it.
        levels = answer.get("aggregations", {}).values()
        return {bucket["key"] for level in levels for bucket in level["buckets"]}

    reasons = {"SelectorNotMatched", "DeviceInUse", "DeviceTainted"}
    assert until(lambda: list_buckets("schedulerlog-top-obstacles"), lambda keys: "DevicesInUse" in keys)
    by_node = until(lambda: list_buckets("schedulerlog-reasons-by-node"), bool)
    assert {key.partition("|")[0].strip() for key in by_node} >= {"gpu-a40-0", "gpu-h100-0", "gpu-h100-1"}
    rows: dict[str, list[Json]] = {}
    for name, saved in imported.select_type("search").items():
        pattern = imported.get_pattern(saved)
        assert pattern
        hits = search(pattern, {"query": query_of(saved, pattern, since, until_), "size": 50})["hits"]["hits"]
        rows[name] = [hit["_source"] for hit in hits if hit["_source"].get("pod") == "train-0"]
    showing = {name: attempts for name, attempts in rows.items() if attempts}
    assert showing, "no saved search shows the refused attempt"
    for name, attempts in showing.items():
        assert all(reasons <= set(attempt["reasons"]) for attempt in attempts), name


@pytest.fixture(scope="module")
def browser(world: World) -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


def open_page(browser: Browser, world: World, width: int, language: str = "en") -> Page:
    page = browser.new_page(viewport={"width": width, "height": 800}, locale="en")
    page.goto(f"{str(world.api.client.base_url).rstrip('/')}/ui/pods/{POD}?lang={language}")
    page.wait_for_load_state("networkidle")
    return page


def test_the_picture_of_a_claim_is_of_the_page_as_it_is(browser: Browser, world: World) -> None:
    page = open_page(browser, world, 1280)
    parts = [page.locator(".obstacle").first, page.locator(".comparison")]
    text = "".join(f"{line}\n" for part in parts for line in part.inner_text().splitlines() if line.strip())
    text = _MORE_NODES.sub("… nodes", text)
    if TAKES_PICTURE:
        # The name of the other language, for which not every machine has letters.
        page.locator(".corner").evaluate("(corner) => { corner.style.visibility = 'hidden'; }")
        end = page.locator("#nodes ~ h2").first.bounding_box()
        assert end
        page.set_viewport_size({"width": 1280, "height": int(end["y"])})
        PICTURE.write_bytes(page.screenshot())
        TEXT.write_text(text, "utf-8")
    assert text == TEXT.read_text("utf-8"), "the page has changed: docs/page.md says how its picture is taken again"


@pytest.mark.parametrize(("width", "language"), [(1280, "en"), (390, "en"), (390, "zh")])
def test_a_claim_is_readable_on_wide_and_narrow_screens(
    browser: Browser, world: World, width: int, language: str
) -> None:
    page = open_page(browser, world, width, language)
    if folder := os.environ.get("SCHEDULERLOG_TEST_SCREENSHOTS"):
        page.screenshot(path=f"{folder}/claim-{width}-{language}.png", full_page=True)
    # Nobody reads a page sideways.
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator(".claim-devices tbody").count() == 3
    assert "46068Mi" in page.locator(".claim-devices").inner_text()
    # The map of the devices has one cell for each of the eight, each named by its reason.
    titles = page.locator(".device-map .cell").evaluate_all("(cells) => cells.map((cell) => cell.title)")
    assert len(titles) == 8
    assert sum("SelectorNotMatched" in title for title in titles) == 4
    assert sum("DeviceInUse" in title for title in titles) == 2


def test_the_change_that_would_help_is_proved_on_the_clusters_objects(world: World) -> None:
    answer = world.api.get(f"/api/v1/namespaces/{NAMESPACE}/pods/train-0/suggestions").json()
    # The pod that has the large device may end, too.
    change, end = answer["items"]
    assert [(edit["constraint"], edit["where"]) for edit in end["edits"]] == [("use", "vision/llm-0")]
    (edit,) = change["edits"]
    assert (answer["state"], edit["constraint"], edit["where"], change["node"]) == (
        "refused", "claim", "train", "gpu-a40-0",
    )  # fmt: skip
    # The largest bound that some device meets.
    assert edit["after"] == BIG.replace("80Gi", "46068Mi")
