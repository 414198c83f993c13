"""Replays recorded answers of HAMi v2.10.0 through the project's public functions, and says where ours differ.

    python -m tests.conformance.replay DIR

reads `DIR/filter_cases.jsonl` and `DIR/codec_cases.jsonl` where they exist, prints per kind `agree N of M` with the
first differences, and exits 1 if any case differs by other than a known defect of HAMi.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from scheduler.devices import allocation
from scheduler.devices.columns import ClusterColumns
from scheduler.judge import codes
from scheduler.judge.decide import Decision, Failed, NotOurs, Policy, decide
from scheduler.judge.request import ContainerRequest
from tests.conformance import codecs
from tests.conformance.bind_replay import bind_differences
from tests.conformance.defects import Difference, explained

Case = Mapping[str, Any]

_SHOWN = 10


def main(folder: str) -> int:
    kinds = {"filter": judge_filter, "codec": judge_codec, "bind": judge_bind}
    paths = {kind: path for kind in kinds if (path := Path(folder) / f"{kind}_cases.jsonl").exists()}
    if not paths:
        print(f"{folder} holds none of {', '.join(f'{kind}_cases.jsonl' for kind in kinds)}")  # noqa: T201
        return 2
    return 1 if sum(_report(kind, path, kinds[kind]) for kind, path in paths.items()) else 0


def judge_filter(case: Case) -> tuple[list[str], str]:
    """What we would answer otherwise, and the defect of HAMi behind it ("" for none)."""
    found = list(differences(case))
    return [str(difference) for difference in found], explained(case, found) if found else ""


def judge_bind(case: Case) -> tuple[list[str], str]:
    """The same for one bind."""
    return list(bind_differences(case)), ""


def judge_codec(case: Case) -> tuple[list[str], str]:
    """The same for one annotation reader or writer."""
    found = codecs.difference(case)
    return ([found], codecs.explained(case)) if found else ([], "")


def _report(kind: str, path: Path, judge: Callable[[Case], tuple[list[str], str]]) -> int:
    """Print what agreed, what differs by a known defect, and the first others; how many others there are."""
    total, differing, excuses = 0, 0, Counter[str]()
    for case in read_cases(path):
        total += 1
        found, excuse = judge(case)
        excuses[excuse] += bool(excuse)
        if found and not excuse:
            differing += 1
            if differing <= _SHOWN:
                print(f"{kind} case {case['id']}:", *found, sep="\n    ")  # noqa: T201
    excused = excuses.total()
    print(f"{kind}: agree {total - differing - excused} of {total}; {excused} differ by known defects of HAMi")  # noqa: T201
    for name, count in sorted((+excuses).items()):
        print(f"  {count} {name}")  # noqa: T201
    return differing


def read_cases(path: Path) -> Iterator[Case]:
    with path.open() as lines:
        yield from (json.loads(line) for line in lines)


def differences(case: Case) -> Iterator[Difference]:
    """Everything that we would answer otherwise."""
    columns, policy, pod = cluster_of(case), policy_of(case), pod_object(case["pod"])
    names = case["node_names"]
    answer = decide(columns, pod, names, policy)
    yield from _about_requests(case, answer)
    if isinstance(answer, NotOurs):
        yield from _differs("", "nodes handed back", names, case["out_wire_reply"]["NodeNames"])
    elif isinstance(answer, Failed):
        yield from _differs("", "error", answer.error, case.get("out_error"))
    else:
        yield from _about_decision(case, answer)
        for name in dict.fromkeys(names):
            yield from _about_grants(case, name, decide(columns, pod, [name], policy))


def _differs(node: str, about: str, ours: object, theirs: object) -> Iterator[Difference]:
    if ours != theirs:
        yield Difference(node, about, ours, theirs)


def _about_requests(case: Case, answer: Decision | NotOurs | Failed) -> Iterator[Difference]:
    ours = [_request(asked) if asked.asks else {} for asked in answer.containers]
    yield from _differs("", "requests", ours, case["out_requests"])


def _request(asked: ContainerRequest) -> dict[str, Any]:
    amounts = (asked.count, asked.vendor, asked.memory_mib, asked.memory_percentage, asked.cores)
    return {"NVIDIA": dict(zip(("Nums", "Type", "Memreq", "MemPercentagereq", "Coresreq"), amounts, strict=True))}


def _about_decision(case: Case, decision: Decision) -> Iterator[Difference]:
    if "calcScore failed" in case.get("out_error", ""):
        yield Difference("", "error", None, case["out_error"])
        return
    failed = decision.failed_nodes()
    for place, name in enumerate(decision.node_names):
        their = case["out_per_node"].get(name, {"fit": False, "reason": codes.NODE_UNREGISTERED})
        yield from _differs(name, "reason", failed.get(name), their.get("reason"))
        if name not in failed and their["fit"]:
            yield from _about_score(name, decision.score[place], np.float32(their["score_g"]))
    yield from _differs("", "chosen", decision.chosen, min(case["out_best_nodes"] or [None]))


def _about_score(name: str, ours: np.float32, theirs: np.float32) -> Iterator[Difference]:
    if not np.array_equal(ours, theirs, equal_nan=True):
        yield Difference(name, "score", ours, theirs)


def _about_grants(case: Case, name: str, alone: Decision | NotOurs | Failed) -> Iterator[Difference]:
    """What the pod would get on one node, whether or not it is the chosen one."""
    their = case["out_per_node"].get(name, {"fit": False})
    if not (isinstance(alone, Decision) and alone.allocation and their["fit"]):
        return
    ours = alone.annotations
    yield from _differs(name, "devices", ours[allocation.ALLOCATED], their["vgpu_devices_positional"])
    slices = _slices(ours.get(allocation.MIG_ALLOCATIONS, "[]"))
    said = _slices(their["annotations_v2_10_0"].get(allocation.MIG_ALLOCATIONS, "[]"))
    yield from _differs(name, "MIG", slices, said)


def _slices(text: str) -> list[dict[str, Any]]:
    """Without the container's number: HAMi counts without the empty slots that it drops; the order tells the rest."""
    return [{key: value for key, value in row.items() if key != "containerIndex"} for row in json.loads(text)]


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
        "metadata": {
            **{key: pod[key] for key in ("name", "namespace", "uid", "annotations")},
            **({"deletionTimestamp": "2026-11-21T03:00:00Z"} if pod.get("deleting") else {}),
        },
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
