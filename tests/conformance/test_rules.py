"""Rules that explain answers of HAMi which are in no committed case: each as HAMi v2.10.0 gave it."""

import base64
import json
from typing import Any

from tests.conformance.__main__ import COMMITTED, SECOND
from tests.conformance.difference import Case, Difference
from tests.conformance.kinds import KINDS, judge
from tests.conformance.rules import KNOWN_NAMES, STABLE_ORDER, VENDOR_FILTER, WIDE_SUMS

_VENDORS = {"device_config": "chart"}


def a_request(vendor: str, limits: dict[str, Any], out: dict[str, Any]) -> Case:
    container = {"name": "c", "limits": limits}
    source: dict[str, Any] = {"container": container, "vendor": vendor, **_VENDORS}
    return {"id": 0, "fn": "container_request", "in": source, "out": {"Type": vendor, **out}, "error": ""}


def test_a_request_is_cut_to_32_bits_before_it_is_divided() -> None:
    case = a_request(
        "Mthreads",
        {"mthreads.com/vgpu": 3, "mthreads.com/sgpu-core": 3_000_000_000},
        {"Nums": 3, "Memreq": 0, "MemPercentagereq": 100, "Coresreq": -431_655_765},
    )
    assert judge(KINDS["vendor codec"], case).rules == (WIDE_SUMS,)


def test_a_review_passes_the_quota_with_a_sum_that_turns_negative() -> None:
    limits = {"iluvatar.ai/MR-V100-vgpu": "1", "iluvatar.ai/MR-V100.vMem": "1", "iluvatar.ai/MR-V100.vCore": "3G"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "w", "namespace": "ml", "uid": "u"},
        "spec": {"containers": [{"name": "c", "resources": {"limits": limits}}]},
    }
    request = {"uid": "r", "operation": "CREATE", "namespace": "ml", "name": "w", "object": pod}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    # HAMi adds this variable to every container with an Iluvatar device.
    variable = {"name": "SOL_CONTINER_NAME", "value": "c"}
    operations = [
        {"op": "add", "path": "/spec/containers/0/env", "value": [variable]},
        {"op": "add", "path": "/spec/schedulerName", "value": "hami-scheduler"},
    ]
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    status = {"metadata": {}, "code": 200}
    response = {"uid": "r", "allowed": True, "status": status, "patch": patch, "patchType": "JSONPatch"}
    case: Case = {
        "id": 0, "vendor": "MR-V100", "scheduler_name": "hami-scheduler", "force_overwrite_default_scheduler": True,
        "review": {**review, "request": request}, "out_review": {**review, "response": response}, "out_code": 200,
        "quotas": [{"namespace": "ml", "name": "q", "hard": {"limits.iluvatar.ai/MR-V100.vCore": "100"}}],
        "running_pods": [], **_VENDORS,
    }  # fmt: skip
    assert judge(KINDS["vendor webhook"], case).rules == (WIDE_SUMS,)


def test_a_suffix_is_read_where_as_many_digits_are_not() -> None:
    source = {"config": {"defaultMemory": 0, "defaultCores": 0, "defaultGPUNum": 1, "memoryFactor": 1}}
    container = {"name": "c", "limits": {"nvidia.com/gpu": 1, "nvidia.com/gpucores": "1E"}}
    out = {"Nums": 1, "Type": "NVIDIA", "Memreq": 0, "MemPercentagereq": 100, "Coresreq": -1_486_618_624}
    case: Case = {"id": 0, "fn": "container_request", "in": {**source, "container": container}, "out": out, "error": ""}
    assert judge(KINDS["codec"], case).rules == (WIDE_SUMS,)
    assert judge(KINDS["codec"], {**case, "out": {**out, "Coresreq": 7}}).is_wrong


def find_filter_case() -> Case:
    """Find a committed case with one namespace and an answer that is ours."""
    kind = KINDS["filter"]
    cases = kind.read(COMMITTED / kind.source)
    return next(case for case in cases if case["pod"]["namespace"] and judge(kind, case).agrees)


def test_a_namespace_that_kubernetes_does_not_allow_is_judged_under_another_name() -> None:
    case, kind = find_filter_case(), KINDS["filter"]
    text = json.dumps(case).replace(json.dumps(case["pod"]["namespace"]), '"team.a"')
    verdict = judge(kind, json.loads(text))
    assert (verdict.agrees, verdict.rules) == (False, (KNOWN_NAMES,))
    other = {**json.loads(text), "out_per_node": {}, "out_best_nodes": ["nowhere"]}
    assert judge(kind, other).is_wrong


def find_unstable_case() -> tuple[Case, str]:
    """Find a recorded case with a node of more than 12 devices, on which HAMi's choice depends on their order."""
    kind = KINDS["filter"]
    for case in kind.read(SECOND / kind.source):
        names = case["node_names"]
        is_unstable = len(names) == 1 and case["out_per_node"].get(names[0], {}).get("alt_results")
        if is_unstable and judge(kind, case).agrees:
            return case, names[0]
    raise LookupError("no case has such a node")


def test_d2_a_node_that_hami_refuses_in_one_order_and_takes_in_another_is_explained() -> None:
    case, node = find_unstable_case()
    answer, reason = case["out_per_node"][node], "16/16 CardInsufficientMemory"
    ours = answer["annotations_v2_10_0"]["hami.io/vgpu-devices-allocated"]
    reply = {**case["out_wire_reply"], "NodeNames": None, "FailedNodes": {node: reason}}
    refused: Case = {
        **case, "out_wire_reply": reply, "out_best_nodes": [], "out_pod_annotations": {}, "out_pod_labels": {},
        "out_per_node": {node: {"fit": False, "reason": reason, "alt_results": [ours]}},
    }  # fmt: skip
    assert judge(KINDS["filter"], refused).rules == (STABLE_ORDER,)
    other = {node: {"fit": False, "reason": reason, "alt_results": ["GPU-other,NVIDIA,1,0:;"]}}
    assert judge(KINDS["filter"], {**refused, "out_per_node": other}).is_wrong


def covers(ours: str, theirs: str, running: list[Any], *devices: dict[str, Any]) -> bool:
    case: Case = {
        "nodes": [{"name": "n1", "annotations": {"hami.io/node-neuron-register": json.dumps(devices)}}],
        "out_per_node": {"n1": {"fit": True}},
        "running_pods": running,
    }
    rule = next(rule for rule in VENDOR_FILTER if rule.name == STABLE_ORDER)
    return rule.covers(case, Difference("n1", "hami.io/neuron-devices-allocated", ours, theirs), lambda _: [])


def test_d2_another_vendors_equal_devices_keep_no_order_either() -> None:
    devices = [{"id": f"neuron-{number}", "index": number, "devmem": 96, "type": "inf2"} for number in range(17)]
    ours, theirs = "neuron-15,Neuron,96,0:;", "neuron-3,Neuron,96,0:;"
    assert covers(ours, theirs, [], *devices)
    assert not covers(ours, theirs, [], *devices[4:]), "a device that is not registered"
    assert not covers(ours, theirs, [], *devices[:12]), "the sort is stable"
    assert not covers(ours, "neuron-3,Neuron,48,0:;", [], *devices), "another amount"
    assert not covers(ours, theirs, [{"annotations": {"x": "neuron-3,Neuron,96,0"}}], *devices), "a device in use"
    devices[3]["devmem"] = 48
    assert not covers(ours, theirs, [], *devices), "a device of another size"
