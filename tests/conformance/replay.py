"""Replays recorded answers of HAMi v2.10.0 through the project's public functions, and says where ours differ.

    python -m tests.conformance.replay DIR

reads `DIR/filter_cases.jsonl` (its README says what the fields mean), prints per kind `agree N of M` with the first
differences, and exits 1 if any case differs by other than a known defect of HAMi.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from scheduler import allocation, codes
from scheduler.columns import ClusterColumns
from scheduler.decide import Decision, Failed, NotOurs, Policy, decide
from tests.conformance.defects import explained

Case = Mapping[str, Any]


def main(folder: str) -> int:
    differing = 0
    for kind, differences in (("filter", filter_differences),):
        path = Path(folder) / f"{kind}_cases.jsonl"
        if path.exists():
            differing += _report(kind, path, differences)
    return 1 if differing else 0


def _report(kind: str, path: Path, differences: Any) -> int:
    agreed, excused, shown = 0, Counter[str](), 0
    total = 0
    for case in read_cases(path):
        total += 1
        found = list(differences(case))
        excuse = explained(case, found) if found else ""
        agreed += not found
        excused[excuse] += bool(excuse)
        if found and not excuse and (shown := shown + 1) <= 10:
            print(f"  case {case['id']} {case['features']}: " + "\n    ".join(found))  # noqa: T201
    print(f"{kind}: agree {agreed} of {total}, {sum(excused.values())} by known defects {dict(excused)}")  # noqa: T201
    return total - agreed - sum(excused.values())


def read_cases(path: Path) -> Iterator[Case]:
    with path.open() as lines:
        yield from (json.loads(line) for line in lines)


def filter_differences(case: Case) -> Iterator[str]:
    """One line for each thing that we would answer otherwise."""
    columns, policy, pod = cluster_of(case), policy_of(case), pod_object(case["pod"])
    names = case["node_names"]
    answer = decide(columns, pod, names, policy)
    yield from _request_differences(case, answer)
    if isinstance(answer, NotOurs):
        if case["out_wire_reply"]["NodeNames"] != names:
            yield f"we hand all nodes back, HAMi says {case['out_wire_reply']}"
    elif isinstance(answer, Failed):
        if case.get("out_error") != answer.error:
            yield f"error: ours {answer.error!r}, HAMi's {case.get('out_error')!r}"
    else:
        yield from _decision_differences(case, answer)
        for name in dict.fromkeys(names):
            alone = decide(columns, pod, [name], policy)
            if isinstance(alone, Decision) and alone.allocation:
                yield from _grant_differences(case["out_per_node"].get(name, {}), name, alone)


def _request_differences(case: Case, answer: Decision | NotOurs | Failed) -> Iterator[str]:
    ours = [
        {
            "Nums": asked.count,
            "Type": asked.vendor,
            "Memreq": asked.memory_mib,
            "MemPercentagereq": asked.memory_percentage,
            "Coresreq": asked.cores,
        }
        for asked in answer.containers
    ]
    theirs = [container.get("NVIDIA") for container in case["out_requests"]]
    for place, (mine, their) in enumerate(zip(ours, theirs, strict=True)):
        if (mine if mine["Nums"] > 0 else None) != their:
            yield f"request {place}: ours {mine}, HAMi's {their}"


def _decision_differences(case: Case, decision: Decision) -> Iterator[str]:
    if case.get("out_error") and "not found" not in case["out_error"]:
        yield f"we decide, HAMi fails with {case['out_error']!r}"
        return
    failed = decision.failed_nodes()
    for place, name in enumerate(decision.node_names):
        their = case["out_per_node"].get(name, {"fit": False, "reason": codes.NODE_UNREGISTERED})
        reason, fits = failed.get(name), bool(decision.node_verdict[place] >= codes.NODE_FITS)
        if fits != their["fit"] or (not fits and reason != their["reason"]):
            yield f"{name}: ours {reason!r}, HAMi's {their.get('reason')!r}"
        if fits and their["fit"] and not _same_score(decision.score[place], their["score_g"]):
            yield f"{name}: score ours {decision.score[place]}, HAMi's {their['score_g']}"
    best = min(case["out_best_nodes"] or [""])
    if (decision.chosen or "") != best:
        yield f"chosen: ours {decision.chosen}, HAMi's {case['out_best_nodes']}"


def _same_score(ours: np.float32, theirs: str) -> bool:
    return bool(np.array_equal(ours, np.float32(theirs), equal_nan=True))


def _grant_differences(their: Mapping[str, Any], name: str, ours: Decision) -> Iterator[str]:
    if not their.get("fit"):
        return
    devices = ours.annotations[allocation.ALLOCATED]
    theirs = their["vgpu_devices_positional"]
    if devices != theirs:
        yield f"{name}: devices ours {devices}, HAMi's {theirs}"
    mig = [_without_container(row) for row in json.loads(ours.annotations.get(allocation.MIG_ALLOCATIONS, "[]"))]
    said = json.loads(their["annotations_v2_10_0"].get(allocation.MIG_ALLOCATIONS, "[]"))
    if mig != [_without_container(row) for row in said]:
        yield f"{name}: MIG ours {mig}, HAMi's {said}"


def _without_container(row: Mapping[str, Any]) -> dict[str, Any]:
    """HAMi numbers containers without the empty slots that it drops; the device order tells the rest."""
    return {key: value for key, value in row.items() if key != "containerIndex"}


def policy_of(case: Case) -> Policy:
    config = case["config"]
    return Policy(
        case["node_scheduler_policy"],
        case["gpu_scheduler_policy"],
        config["defaultMemory"],
        config["defaultCores"],
        config["defaultGPUNum"],
        config["memoryFactor"],
    )


def cluster_of(case: Case) -> ClusterColumns:
    """The cluster as HAMi had seen it when it was asked, fed in the same order."""
    columns = ClusterColumns(accepts_colon_form=False)
    now = datetime.strptime(case["clock"], "%Y-%m-%dT%H:%M:%SZ")  # noqa: DTZ007 - handshakes carry no zone
    for quota in case.get("quotas") or ():
        columns.apply_quota(_quota_object(quota))
    for node in case["nodes"]:
        if node.get("previous"):
            columns.apply_node(_node_object(node["name"], node["previous"]), now)
    for node in case["nodes"]:
        columns.apply_node(_node_object(node["name"], node), now)
    for pod in case["running_pods"] or ():
        columns.apply_pod(pod_object(pod))
        if "update" in pod:
            columns.apply_pod(pod_object({**pod, **pod["update"]}))
    return columns


def _quota_object(quota: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "metadata": {"name": quota["name"], "namespace": quota["namespace"]},
        "spec": {"hard": quota["hard"]},
    }


def _node_object(name: str, state: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "annotations": state["annotations"]},
        "status": {"allocatable": state.get("allocatable") or {}},
    }


def pod_object(pod: Mapping[str, Any]) -> dict[str, Any]:
    """A Kubernetes Pod from the data's short form."""
    return {
        "metadata": {key: pod[key] for key in ("name", "namespace", "uid", "annotations")},
        "spec": {
            "initContainers": _containers(pod["initContainers"] or ()),
            "containers": _containers(pod["containers"] or ()),
        },
        "status": {
            "phase": pod.get("phase", "Pending"),
            "initContainerStatuses": [_init_status(code) for code in pod.get("init_container_exit_codes") or ()],
        },
    }


def _containers(listed: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"name": each["name"], "resources": {key: each[key] for key in ("limits", "requests") if key in each}}
        for each in listed
    ]


def _init_status(code: int) -> dict[str, Any]:
    return {"state": {"running": {}} if code < 0 else {"terminated": {"exitCode": code}}}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
