"""Sentences about words that no scheduler reads, about vendors, handshakes and ends of logs: three shapes of each.

A row has an input, a text of the answer, and one that it must not have. The texts come from HAMi's documents and the
vendors' names in its device table.
"""

import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson
import pytest
import yaml

from schemas.json_types import Json
from tests.support.builders.hami_lines import a_line, write_fit, write_request, write_start, write_unfit
from tests.support.builders.simulations import a_gpu_node, a_gpu_pod, simulate
from tests.support.harness.surfaces import run_command

Ask = Callable[[Path], str]
EXAMPLES: Final = Path("examples/vendors")


class Row(NamedTuple):
    ask: Ask
    text: str
    wrong: str = "never this"


def simulate_on(workload: Json, *objects: Json) -> Ask:
    """Ask where a workload would go."""
    return lambda _: _collect_english(simulate(deepcopy(workload), *objects))


def explain_objects(*objects: Json) -> Ask:
    """Ask about the only pod of a file of objects."""

    def ask(folder: Path) -> str:
        file = folder / "objects.json"
        file.write_bytes(orjson.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
        return run_command("explain", str(file), find_pod_name(objects), "-o", "wide")

    return ask


def explain_log(*lines: bytes, pod: str = "ml/trainer") -> Ask:
    """Ask about a pod of a log."""

    def ask(folder: Path) -> str:
        file = folder / "scheduler.log"
        file.write_bytes(b"\n".join(lines) + b"\n")
        return run_command("explain", str(file), pod, "-o", "wide")

    return ask


def find_pod_name(objects: tuple[Json, ...]) -> str:
    pod = next(item for item in objects if item["kind"] == "Pod")
    return f"{pod['metadata'].get('namespace', 'default')}/{pod['metadata']['name']}"


def _collect_english(answer: Any) -> str:
    match answer:
        case {"en": str(text), "zh": _}:
            return text
        case dict():
            return "\n".join(_collect_english(value) for value in answer.values())
        case list():
            return "\n".join(map(_collect_english, answer))
    return ""


def make_waiting(pod: Json) -> Json:
    """Make a pod wait, as the API server has it after HAMi's scheduler refused it."""
    message = "0/1 nodes are available: 1 NodeUnfitPod."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return {**pod, "spec": {**pod["spec"], "schedulerName": "hami-scheduler"},
            "status": {"phase": "Pending", "conditions": [condition]}}  # fmt: skip


def annotate(pod: Json, **annotations: str) -> Json:
    """Annotate a pod: ``__`` stands for the slash of a key, ``_`` for a dash."""
    keys = {_to_key(name): value for name, value in annotations.items()}
    return {**pod, "metadata": {**pod["metadata"], "annotations": keys}}


def _to_key(name: str) -> str:
    domain, _, key = name.rpartition("__")
    domain = {"nvidia": "nvidia.com", "hami": "hami.io", "hygon": "hygon.com"}.get(domain, domain)
    return f"{domain}/{key.replace('_', '-')}" if domain else key.replace("_", "-")


def a_workload(kind: str, **annotations: str) -> Json:
    keys = {_to_key(name): value for name, value in annotations.items()}
    template = {"metadata": {}, "spec": a_gpu_pod(gpu=1, gpumem=1000)["spec"]}
    spec: Json = {"template": template}
    if kind == "CronJob":
        spec = {"schedule": "* * * * *", "jobTemplate": {"spec": spec}}
    version = "batch/v1" if kind in ("Job", "CronJob") else "apps/v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "web", "annotations": keys}, "spec": spec}


def add_owner(pod: Json, kind: str, name: str) -> Json:
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": name, "controller": True}
    return {**pod, "metadata": {**pod["metadata"], "ownerReferences": [owner]}}


def a_quota(entry: str) -> Json:
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team", "namespace": "default"},
            "spec": {"hard": {entry: "1000"}}}  # fmt: skip


def read_vendor(name: str, handshake: str = "") -> tuple[Json, Json]:
    """Read the example pod of a vendor and its node; ``handshake``: in place of the node's."""
    pod = yaml.safe_load((EXAMPLES / "pods" / f"{name}.yaml").read_text())
    node = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text())
    annotations = node["metadata"]["annotations"]
    for key in annotations:
        if handshake and "handshake" in key:
            annotations[key] = handshake
    return pod, node


def with_amount(name: str, resource: str, amount: Any) -> tuple[Json, Json]:
    pod, node = read_vendor(name)
    pod["spec"]["containers"][0]["resources"]["limits"][resource] = amount
    return pod, node


NODE: Final = a_gpu_node("n1", 2)
POD: Final = a_gpu_pod(gpu=1, gpumem=1000)
ASCEND: Final = with_amount("ascend", "huawei.com/Ascend910B3-memory", 700000)
HYGON: Final = with_amount("hygon", "hygon.com/dcumem", 700000)
ILUVATAR: Final = with_amount("iluvatar", "iluvatar.ai/MR-V100.vMem", 700000)
REQUESTING: Final = "Requesting_2026-11-21 03:00:30"
ENDS: Final = r"\b0 s ago|in a minute|readyz"
ROWS: Final[dict[str, Row]] = {
    "vendors' words: Ascend, simulated": Row(simulate_on(*ASCEND), r"huawei\.com/Ascend910B3-memory", "nvidia"),
    "vendors' words: Hygon, a waiting pod": Row(
        explain_objects(make_waiting(HYGON[0]), HYGON[1]), r"hygon\.com/dcumem", "nvidia|the source does not say"
    ),
    "vendors' words: Iluvatar, simulated": Row(simulate_on(*ILUVATAR), r"iluvatar\.ai/MR-V100\.vMem", "nvidia"),
    "a misspelt key: simulated": Row(
        simulate_on(annotate(POD, nvidia__use_gputyp="A10"), NODE),
        r"nearest that HAMi reads is nvidia\.com/use-gputype",
    ),
    "a misspelt key: of HAMi, a waiting pod": Row(
        explain_objects(annotate(make_waiting(POD), hami__gpu_schedule_policy="spread"), NODE),
        r"nearest that HAMi reads is hami\.io/gpu-scheduler-policy",
    ),
    "a misspelt key: another vendor's": Row(
        simulate_on(annotate(read_vendor("hygon")[0], hygon__use_dcutypes="Z100"), read_vendor("hygon")[1]),
        r"nearest that HAMi reads is hygon\.com/use-dcutype",
    ),
    "on the workload: Deployment": Row(
        simulate_on(a_workload("Deployment", nvidia__use_gputype="A10"), NODE), r"stands on Deployment/web .*no effect"
    ),
    "on the workload: CronJob": Row(
        simulate_on(a_workload("CronJob", nvidia__nouse_gputype="T4"), NODE), r"stands on CronJob/web .*no effect"
    ),
    "on the workload: StatefulSet with its waiting pod": Row(
        explain_objects(
            add_owner(make_waiting(POD), "StatefulSet", "web"),
            a_workload("StatefulSet", nvidia__use_gputype="A10"),
            NODE,
        ),
        r"stands on StatefulSet/web .*no effect",
    ),
    "nobody has it: a model": Row(
        simulate_on(annotate(POD, nvidia__use_gputype="H100"), NODE), r"H100[^\n]*NVIDIA A10"
    ),
    "nobody has it: a UUID, a waiting pod": Row(
        explain_objects(annotate(make_waiting(POD), nvidia__use_gpuuuid="GPU-n1-7"), NODE), r"GPU-n1-7[^\n]*GPU-n1-\d"
    ),
    "nobody has it: another vendor's model": Row(
        simulate_on(annotate(read_vendor("hygon")[0], hygon__use_dcutype="K100"), read_vendor("hygon")[1]),
        r"K100[^\n]*DCU-Z100L",
    ),
    "a quota's name: memory, simulated": Row(
        simulate_on(POD, NODE, a_quota("limits.nvidia.com/gpu-mem")), r"HAMi counts limits\.nvidia\.com/gpumem"
    ),
    "a quota's name: cores, a waiting pod": Row(
        explain_objects(make_waiting(POD), NODE, a_quota("limits.nvidia.com/gpucore")),
        r"HAMi counts limits\.nvidia\.com/gpucores",
    ),
    "a quota's name: another vendor's": Row(
        simulate_on(*read_vendor("hygon"), a_quota("limits.hygon.com/dcumemory")),
        r"HAMi counts limits\.hygon\.com/dcumem",
    ),
    "a suffix: Gi, simulated": Row(simulate_on(a_gpu_pod(gpu=1, gpumem="8Gi"), NODE), r"8Gi[^\n]*Write nvidia"),
    "a suffix: G, a waiting pod": Row(
        explain_objects(make_waiting(a_gpu_pod(gpu=1, gpumem="16G")), NODE), r"16G[^\n]*Write nvidia"
    ),
    "a suffix: another vendor's": Row(
        simulate_on(*with_amount("hygon", "hygon.com/dcumem", "8Gi")), r"8Gi[^\n]*Write hygon\.com/dcumem"
    ),
    "a handshake is a state: Ascend": Row(
        simulate_on(*read_vendor("ascend", REQUESTING)), "would go to node ascend-node", "unregistered"
    ),
    "a handshake is a state: Hygon": Row(
        simulate_on(*read_vendor("hygon", REQUESTING)), "would go to node hygon-node", "unregistered"
    ),
    "a handshake is a state: Iluvatar, a waiting pod": Row(
        explain_objects(make_waiting(read_vendor("iluvatar", REQUESTING)[0]), read_vendor("iluvatar", REQUESTING)[1]),
        r"fits on 1 of 1 node|1 of 1 would take it", "unregistered",
    ),
    "a log's end: before a verdict": Row(explain_log(write_start(), write_request(1)), "log ends", ENDS),
    "a log's end: after nodes": Row(
        explain_log(
            write_start(), write_request(1), write_fit("n0", "7.5"), write_unfit("n1", "1/1 CardInsufficientMemory")
        ),
        "log ends", ENDS,
    ),
    "a log's end: before the bind": Row(
        explain_log(
            write_start(), write_request(1), write_fit("n0", "7.5"),
            a_line('"Event occurred" object="ml/trainer" fieldPath="" kind="Pod" apiVersion="v1" type="Normal" '
                   'reason="FilteringSucceed" message="find fit node(n0), 0 nodes not fit, 1 nodes fit(n0:7.50)"'),
        ),
        "log ends", ENDS,
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
def test_the_sentence_is_there_whatever_the_shape_of_the_input(row: str, tmp_path: Path) -> None:
    answer = ROWS[row].ask(tmp_path)
    assert re.search(ROWS[row].text, answer), answer
    assert not re.search(ROWS[row].wrong, answer, re.IGNORECASE), answer
