"""Simulated pods that do not exist yet, on node states from a real topic."""

import json
from datetime import timedelta
from typing import Any

import httpx
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.events import DeviceAllocation, DeviceKind, PodRef
from schemas.placements import PodPlacement
from tests.support.builders.node_states import a_node_state
from tests.support.harness.api_process import Served
from tests.support.harness.index_filling import NOW, Filling
from tests.support.stress import count_examples
from tests.support.waiting import until

CLUSTER = "api-simulation"
PATH = f"/api/v1/clusters/{CLUSTER}/simulate"
KIND = DeviceKind(
    model="NVIDIA A100", vendor="NVIDIA", mode="hami-core", memory_mib=10_000, cores_percent=100, slots=10
)


def a_pod(memory: int, count: int = 1, **metadata: Any) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": str(count), "nvidia.com/gpumem": str(memory)}
    containers = [{"name": "main", "image": "none", "resources": {"limits": limits}}]
    full_metadata = {"name": "new", "namespace": "llm"} | metadata
    return {"apiVersion": "v1", "kind": "Pod", "metadata": full_metadata, "spec": {"containers": containers}}


@pytest.fixture(scope="module")
def ready(filling: Filling, api: Served) -> Served:
    """One node of two devices: 1,000 and 5,000 of 10,000 MiB are free, and team-b/holder holds the second."""
    state = a_node_state(
        "sim-node", 2, cluster=CLUSTER, revision=1, kinds=[KIND], memory_used_mib=[9_000, 5_000],
        cores_used_percent=[0, 0], slots_used=[1, 1], observed_at=NOW,
    )  # fmt: skip
    filling.publish_states(state)
    filling.index_placements(
        PodPlacement(
            cluster=CLUSTER,
            id="api-simulation-holder",
            pod=PodRef(namespace="team-b", name="holder", uid="u-sim-holder"),
            node="sim-node",
            started_at=NOW - timedelta(minutes=15),
            allocations=[DeviceAllocation(uuid=state.uuid[1], container="main", memory_mib=5_000, cores_percent=0)],
        )
    )
    assert until(lambda: post(api, a_pod(100)).status_code == httpx.codes.OK)
    return api


def post(api: Served, pod: Any, path: str = PATH) -> httpx.Response:
    body = pod if isinstance(pod, bytes) else json.dumps(pod).encode()
    return api.client.post(path, content=body)


def test_a_pod_that_fits_has_a_node_and_its_devices(ready: Served) -> None:
    simulation = post(ready, a_pod(4_000)).json()
    assert simulation["node"] == "sim-node"
    assert simulation["schedulerlog"]["filter"]["status"] == "passed"
    assert simulation["schedulerlog"]["detail"]["picked_devices"]
    assert (simulation["suggestions"]["state"], simulation["suggestions"]["items"]) == ("fits", [])


def test_one_that_does_not_fit_has_the_reason_and_what_would_have_to_change(ready: Served) -> None:
    text = yaml.safe_dump(a_pod(8_000)).encode()
    simulation = post(ready, text).json()
    assert simulation["node"] is None
    (node,) = simulation["schedulerlog"]["filter"]["nodes"]
    assert node["containers"][0]["reason"] == "2/2 CardInsufficientMemory"
    assert simulation["diagnosis"]["state"] == "refused"
    edits = [[(e["where"], e["after"]) for e in item["edits"]] for item in simulation["suggestions"]["items"]]
    assert edits == [[("main: nvidia.com/gpumem", "5000")], [("team-b/holder", "")]]
    # Less memory and the holder's end each let it in: it takes both to keep it out.
    assert simulation["diagnosis"]["excluded_by"] == simulation["suggestions"]["excluded_by"] == ["use", "memory"]


def test_nothing_of_it_is_kept(ready: Served) -> None:
    # What fits once would not fit twice.
    assert [post(ready, a_pod(4_000)).json()["node"] for _ in range(2)] == ["sim-node"] * 2
    answer = ready.get(PATH.replace("simulate", "namespaces/llm/pods/new/schedulerlog"))
    assert answer.status_code == httpx.codes.NOT_FOUND


def test_a_pod_that_asks_for_no_device_is_judged_by_the_filters_alone(ready: Served) -> None:
    plain = a_pod(1)
    plain["spec"]["containers"][0].pop("resources")
    simulation = post(ready, plain).json()
    empty = {name: simulation[name] for name in ("node", "schedulerlog", "diagnosis", "suggestions")}
    assert empty == dict.fromkeys(empty)
    assert (simulation["state"], simulation["devices"], simulation["fit_nodes"]) == ("fits", [], simulation["nodes"])


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "describes 0 pods"),
        (b"kind: Deployment", "describes 0 pods"),
        (b"a: [", "body:"),
        (b"\xff\xfe", "body"),
        (json.dumps(a_pod(1, name="Not A Name")).encode(), "RFC 1123"),
        (json.dumps(a_pod(1, namespace="../etc")).encode(), "RFC 1123"),
    ],
)
def test_a_wrong_body_says_what_is_wrong_where_and_what_to_send(ready: Served, body: bytes, words: str) -> None:
    answer = post(ready, body)
    assert answer.status_code == httpx.codes.BAD_REQUEST, answer.text
    assert words in answer.json()["error"]
    assert "kind Pod" in answer.json()["next"]


def test_a_body_that_is_too_long_is_refused(ready: Served) -> None:
    answer = post(ready, b"# " + b"x" * 70_000)
    assert answer.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE
    assert answer.json()["error"] == "the body is longer than 64 KiB"


def test_a_cluster_without_devices_and_another_method_are_refused(ready: Served) -> None:
    assert post(ready, a_pod(1), "/api/v1/clusters/nowhere/simulate").status_code == 503
    assert ready.get(PATH).status_code == 405


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["metadata", "spec", "kind", "containers", "limits", "name"]), inner, max_size=4
            )
        ),
        max_leaves=12,
    )
)
@settings(max_examples=count_examples(30))
def test_any_body_has_an_answer(ready: Served, spec: Any) -> None:
    pod = a_pod(1) | {"spec": spec}
    assert post(ready, pod).status_code in (200, 400)
