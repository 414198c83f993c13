"""The webhook, bytes to bytes; what HAMi itself answered is replayed in tests/conformance."""

import base64
import sys
from collections import Counter
from dataclasses import astuple
from typing import Any

import jsonpatch
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.admission.admit import AdmissionRules
from engine.fit.device_config import SHIPPED, read
from engine.fit.devices.quota import Quotas
from engine.hami.vendors import ONLY_NVIDIA
from scheduler.webhook.review import answer

RULES = AdmissionRules("hami-scheduler", True, ONLY_NVIDIA)
EVERY_VENDOR = AdmissionRules("hami-scheduler", True, read(SHIPPED))


def a_container(name: str = "main", limits: dict[str, Any] | None = None, **value: Any) -> dict[str, Any]:
    return {"name": name, "image": "busybox", "resources": {"limits": limits or {}}, **value}


def a_pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod", "namespace": "ns"},
        "spec": {"containers": list(containers), **spec},
    }


def a_review(item: Any, version: str = "admission.k8s.io/v1") -> bytes:
    return orjson.dumps({"apiVersion": version, "kind": "AdmissionReview", "request": {"uid": "u", "object": item}})


def review_pod(item: Any, rules: AdmissionRules = RULES, quotas: Quotas | None = None) -> dict[str, Any]:
    response: dict[str, Any] = orjson.loads(answer(a_review(item), rules, quotas or Quotas()))["response"]
    return response


def patch_pod(item: dict[str, Any], rules: AdmissionRules = RULES) -> Any:
    response = review_pod(item, rules)
    assert response["allowed"], response
    operations = orjson.loads(base64.b64decode(response.get("patch", base64.b64encode(b"[]"))))
    return jsonpatch.apply_patch(item, operations)


ONE_GPU = {"nvidia.com/gpu": "1"}


@pytest.mark.parametrize("version", ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"])
def test_the_answer_is_of_the_version_that_asked(version: str) -> None:
    written = orjson.loads(answer(a_review(a_pod(a_container()), version), RULES, Quotas()))
    assert written["apiVersion"] == version
    assert written["response"]["uid"] == "u"


def test_a_pod_that_asks_for_a_device_gets_our_scheduler_and_all_cores_of_it() -> None:
    pod = patch_pod(a_pod(a_container(limits=ONE_GPU)))
    assert pod["spec"]["schedulerName"] == "hami-scheduler"
    assert pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpucores"] == "100"


@pytest.mark.parametrize("limits", [ONE_GPU, {"nvidia.com/gpumem": "3000"}])
def test_m4_a_pod_of_which_more_containers_ask_than_are_judged_may_not_come_in(limits: dict[str, Any]) -> None:
    asking = [a_container(f"main-{number}", limits) for number in range(17)]
    response = review_pod(a_pod(*asking))
    assert (response["allowed"], response["status"]["code"]) == (False, 403)
    assert response["status"]["message"] == (
        "17 containers of the pod ask for devices, 16 may: divide it into several pods"
    )
    assert review_pod(a_pod(*asking[1:], *(a_container(f"sidecar-{number}") for number in range(100))))["allowed"]


@pytest.mark.parametrize(
    ("limits", "is_allowed"), [({"nvidia.com/gpumem": "1"}, False), ({"huawei.com/Ascend310P": "1"}, True), ({}, True)]
)
def test_n8_a_pod_of_more_containers_than_are_judged_is_not_looked_at_any_further(
    limits: dict[str, Any], is_allowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred thousand held the scheduler for ten seconds, and who reaches the webhook could send them."""
    monkeypatch.delattr("scheduler.webhook.review._Pod")
    monkeypatch.delattr("scheduler.webhook.review.admit")
    response = review_pod(a_pod(*(a_container(f"main-{number}", limits) for number in range(501))))
    assert response["allowed"] == is_allowed
    assert "patch" not in response
    if not is_allowed:
        message = "the pod has 501 containers, 500 are judged at most: divide it into several pods"
        assert (response["status"]["code"], response["status"]["message"]) == (403, message)


MANY = [{"name": "a"}]
NUMBERED = {f"a{number}": "" for number in range(10_000)}


def a_crowded_pod(field: str, size: int) -> dict[str, Any]:
    """A pod that asks for a device, with so many values in one of its fields."""
    listed, named = MANY * size, dict(list(NUMBERED.items())[:size])
    match field:
        case "env" | "volumeMounts":
            return a_pod(a_container(limits=ONE_GPU) | {field: listed})
        case "volumes" | "tolerations":
            return a_pod(a_container(limits=ONE_GPU), **{field: listed})
        case "limits":
            return a_pod(a_container(limits=ONE_GPU | dict.fromkeys(named, "1")))
        case _:
            pod = a_pod(a_container(limits=ONE_GPU))
            return pod | {"metadata": pod["metadata"] | {field: named}}


def count_calls(review: bytes) -> int:
    """Count the functions that are called to answer it, those of Python and of C alike."""
    calls = Counter[str]()
    sys.setprofile(lambda _, event, __: calls.update([event]))
    try:
        answer(review, RULES, Quotas())
    finally:
        sys.setprofile(None)
    return calls["call"] + calls["c_call"]


@pytest.mark.parametrize("field", ["env", "volumeMounts", "volumes", "tolerations", "annotations", "labels"])
def test_n9_what_we_do_not_read_of_a_pod_costs_no_call(field: str) -> None:
    """A container of half a million variables held the scheduler for ten seconds."""
    few, many = (count_calls(a_review(a_crowded_pod(field, size))) for size in (100, 10_000))
    assert few < many + 50
    assert many < few + 50


def test_n9_a_pod_of_more_quantities_than_are_read_is_refused_where_it_asks_for_devices() -> None:
    assert review_pod(a_crowded_pod("limits", 9_999))["allowed"]
    response = review_pod(a_crowded_pod("limits", 10_000))
    assert (response["allowed"], response["status"]["code"]) == (False, 403)
    assert "10001 quantities of resources, 10000 are read" in response["status"]["message"]
    assert review_pod(a_pod(a_container(limits=dict.fromkeys([*NUMBERED, "cpu"], "1"))))["allowed"]


def test_n9_a_variable_is_appended_to_many() -> None:
    limits = ONE_GPU | {"nvidia.com/priority": "1"}
    pod = patch_pod(a_pod(a_container(limits=limits, env=MANY * 1_000)))
    assert pod["spec"]["containers"][0]["env"] == [*MANY * 1_000, {"name": "CUDA_TASK_PRIORITY", "value": "1"}]


def test_a_pod_without_devices_is_left_alone() -> None:
    assert "patch" not in review_pod(a_pod(a_container(limits={"cpu": "1"})))


def test_memory_without_a_count_asks_for_one_device() -> None:
    pod = patch_pod(a_pod(a_container(limits={"nvidia.com/gpumem": "3000"})))
    assert pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"


def test_a_privileged_container_may_not_have_a_device() -> None:
    response = review_pod(a_pod(a_container(limits=ONE_GPU, securityContext={"privileged": True})))
    assert (response["allowed"], response["status"]["code"]) == (False, 403)
    assert response["status"]["message"] == "container main is privileged"


def test_a_privileged_container_without_devices_may_come_in() -> None:
    assert review_pod(a_pod(a_container(securityContext={"privileged": True})))["allowed"]


def test_a_pod_of_another_scheduler_is_left_to_it() -> None:
    response = review_pod(a_pod(a_container(limits=ONE_GPU), schedulerName="volcano"))
    assert response["allowed"]
    assert "patch" not in response


def test_the_default_scheduler_is_overwritten_only_with_the_flag() -> None:
    pod = a_pod(a_container(limits=ONE_GPU), schedulerName="default-scheduler")
    assert patch_pod(pod)["spec"]["schedulerName"] == "hami-scheduler"
    assert "patch" not in review_pod(pod, AdmissionRules("hami-scheduler", False))


def test_a_pod_over_its_namespaces_quota_is_refused() -> None:
    quotas = Quotas()
    hard = {"limits.nvidia.com/gpumem": "5000"}
    quotas.apply({"metadata": {"namespace": "ns", "name": "q"}, "spec": {"hard": hard}})
    container = a_container(limits={"nvidia.com/gpu": "2", "nvidia.com/gpumem": "3000"})
    assert review_pod(a_pod(container), quotas=quotas)["status"]["message"] == "exceeding resource quota"


def test_the_pod_under_review_is_not_changed_itself() -> None:
    pod = a_pod(a_container(limits=ONE_GPU))
    before = orjson.dumps(pod)
    patch_pod(pod)
    assert orjson.dumps(pod) == before


@pytest.mark.parametrize(
    ("item", "path"),
    [
        (a_pod() | {"spec": {"containers": "oops"}}, "Pod.spec.containers"),
        (
            a_pod(a_container(limits={"nvidia.com/gpu": "many"})),
            "Pod.spec.containers.0.resources.limits.nvidia.com/gpu",
        ),
        (a_pod(a_container(env="PATH")), "Pod.spec.containers.0.env"),
        (a_pod(a_container(securityContext={"privileged": "yes"})), "Pod.spec.containers.0.securityContext.privileged"),
        (a_pod() | {"metadata": []}, "Pod.metadata"),
    ],
)
def test_a_pod_that_can_t_be_read_is_refused_with_the_place(item: Any, path: str) -> None:
    status = review_pod(item)["status"]
    assert status["code"] == 400
    assert status["message"].startswith(path + ":")


@pytest.mark.parametrize("body", [b"{bad", b"[]", b"3", b'"x"', b"{}", b'{"kind": "AdmissionReview"}', b"\xff\xfe"])
def test_what_is_no_review_is_answered_with_400(body: bytes) -> None:
    assert orjson.loads(answer(body, RULES, Quotas()))["response"]["status"]["code"] == 400


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_QUANTITIES: st.SearchStrategy[Any] = st.sampled_from(
    ["1", "0", "-5", "2k", "1e30", "500m", "1Ei", "", "x", 3, 2.5, None, [], True]
)
_NAMES = [name for vendor in EVERY_VENDOR.vendors for name in astuple(vendor.resources) if name]
_LIMITS = st.dictionaries(
    st.sampled_from([*(name for name in _NAMES if name.startswith("nvidia.com/")), "cpu"]) | st.sampled_from(_NAMES),
    _QUANTITIES,
)
_CONTAINERS = st.fixed_dictionaries(
    {},
    optional={
        "name": st.text(max_size=4) | _VALUES,
        "env": st.none() | st.lists(_VALUES, max_size=2),
        "resources": st.fixed_dictionaries({}, optional={"limits": _LIMITS | _VALUES, "requests": _LIMITS | _VALUES}),
        "securityContext": st.fixed_dictionaries({}, optional={"privileged": st.booleans() | _VALUES}) | _VALUES,
    },
)


@given(
    st.fixed_dictionaries(
        {
            "metadata": st.fixed_dictionaries({}, optional={"namespace": st.text(max_size=4), "annotations": _VALUES}),
            "spec": st.fixed_dictionaries(
                {"containers": st.lists(_CONTAINERS, max_size=3)},
                optional={"initContainers": st.lists(_CONTAINERS, max_size=2), "schedulerName": _VALUES},
            ),
        }
    )
    | _VALUES
)
def test_any_object_gets_an_answer_whose_patch_applies(item: Any) -> None:
    before = orjson.dumps(item)
    response = review_pod(item, EVERY_VENDOR)
    assert response["status"]["code"] in (200, 400, 403, 500)
    if "patch" in response:
        jsonpatch.apply_patch(item, orjson.loads(base64.b64decode(response["patch"])))
        assert orjson.dumps(item) == before


@pytest.mark.parametrize("depth", [900, 10_000])
def test_l7_an_object_nested_deep_is_patched_or_unreadable(depth: int) -> None:
    """Fields that no pod has, into which nothing looks; the parser takes a thousand levels."""
    flat = a_review(a_pod(a_container(limits=ONE_GPU)))
    deep = flat.replace(b'"busybox"', b"[" * depth + b"]" * depth)
    plain, response = (orjson.loads(answer(body, RULES, Quotas()))["response"] for body in (flat, deep))
    assert response == plain if depth == 900 else response["status"]["code"] == 400


@pytest.mark.parametrize("field", [b'"1"', b'[{"name":"a"}]', b'"nvidia"'])
def test_l7_a_field_that_we_read_may_be_nested_as_deep(field: bytes) -> None:
    pod = a_pod(a_container(limits=ONE_GPU, env=MANY), runtimeClassName="nvidia")
    deep = a_review(pod).replace(field, b"[" * 900 + b"]" * 900)
    assert orjson.loads(answer(deep, RULES, Quotas()))["response"]["status"]["code"] == 400
