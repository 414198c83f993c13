"""Words of older versions, of other plugins and of consoles, about what newer ones say in a known form."""

from textwrap import dedent

import pytest

from ingest.cases.answers import diagnose_pods
from ingest.cases.foreign_texts import find_advice
from ingest.cases.read_case import list_pod_names, read_case_text
from schemas.answers.diagnosis import Diagnosis


def diagnose_text(text: str) -> tuple[str, Diagnosis]:
    case = read_case_text(dedent(text))
    (name,) = list_pod_names(case)
    (answer,) = diagnose_pods(case, [name])
    return name, answer.diagnosis


def get_code(diagnosis: Diagnosis) -> str:
    return diagnosis.obstacle.code if diagnosis.obstacle else ""


# Format strings of Koordinator's plugin in its releases, and of a fork that counts what remains.
@pytest.mark.parametrize(
    "words",
    [
        "Scheduling refused due to insufficient quotas, quotaName: vision, runtime: {amounts}, ",
        "Scheduling refused due to insufficient quotas, quotaNameTopo: [root vision], runtime: {amounts}, ",
        "Insufficient quotas [[nvidia.com/gpu]], quotaName: vision, runtime: {amounts}, ",
        "Insufficient quotas [[cpu memory]], quotaName: vision, runtime: {amounts}, ",
        "Insufficient quotas, quotaName: vision, available: {amounts}, remained: nvidia.com/gpu:0, ",
        "quota not enough, Insufficient quotas, quotaName: vision, available: {amounts}, remained: cpu:3, ",
    ],
)
def test_every_wording_of_koordinators_quota_is_a_quota_and_no_lack_of_a_node(words: str) -> None:
    text = words.format(amounts="cpu:64,nvidia.com/gpu:8") + (
        "used: cpu:8,nvidia.com/gpu:7, pod's request: cpu:2,nvidia.com/gpu:4, exceedDimensions: [nvidia.com/gpu]"
    )
    row = f"  Warning  FailedScheduling  7s  koord-scheduler  0/9 nodes are available: {text}."
    _, diagnosis = diagnose_text(f"Events:\n{row}\n")
    assert get_code(diagnosis) == "QueueFull"
    assert "quota vision leaves too little nvidia.com/gpu for it: 7 of 8 are used, and the pod asks for 4" in (
        diagnosis.sentence.en
    )


@pytest.mark.parametrize(
    ("words", "minimum", "counts"),
    [
        ("7/9 tasks in gang unschedulable: job is not ready, 7 Pending, 7 minAvailable.", 7, "7 Pending"),
        ("3/4 tasks in gang unschedulable: job is not ready, 1 Running, 3 Pending, 3 minAvailable.", 3, "1 Running"),
        ("pod group is not ready, 12 minAvailable, 3 Running, 9 Pending; Pending: 9 Unschedulable", 12, "3 Running"),
        ("2/8 tasks in gang unschedulable: pod group is not ready, 2 minAvailable, 8 Pending.", 2, "8 Pending"),
    ],
)
def test_words_of_volcanos_gang_are_read_in_both_wordings_and_any_order(words: str, minimum: int, counts: str) -> None:
    _, diagnosis = diagnose_text(f"  Warning  FailedScheduling  7s  volcano  {words}\n")
    assert get_code(diagnosis) == "GangWaits"
    assert f"{minimum} of its pods have to start together ({counts}" in diagnosis.sentence.en


# Reported in kube-batch 931, networkservicemesh 801 and volcano-sh/devices 6; shortened.
@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("requested number of devices unavailable for a.io/socket. Requested: 2, Available: 0", "KubeletLacksDevices"),
        ('rpc error: code = Unknown desc = pods "p" is forbidden: cannot update', "KubeletPluginFailed"),
        ("device plugin GetPreferredAllocation rpc failed: nvml: GPU is lost", "KubeletDeviceLost"),
    ],
)
@pytest.mark.parametrize(
    "around", ["Allocate failed due to {}, which is", "Update plugin resources failed due to {}, which is"]
)
def test_a_kubelets_refusal_is_read_in_the_words_of_its_version(around: str, words: str, code: str) -> None:
    message = f"{around.format(words)} unexpected."
    row = f"  Warning  UnexpectedAdmissionError  10s   kubelet, amax-7  {message}\n"
    _, diagnosis = diagnose_text(row)
    assert (diagnosis.state, get_code(diagnosis)) == ("rejected", code)
    described = (
        "Name: fit-3\nNamespace: nlp\nNode: n-7/\nStatus: Failed\nReason: UnexpectedAdmissionError\n"
        f"Message: Pod {message}\n"
    )
    name, diagnosis = diagnose_text(described)
    assert (name, get_code(diagnosis)) == ("nlp/fit-3", code)
    assert "which is unexpected" not in diagnosis.sentence.en


@pytest.mark.parametrize(
    ("subject", "name"),
    [("nlp/fit-3", "nlp/fit-3"), ("<namespace>/<podname>", "namespace/podname"), ("fit-3", "default/fit-3")],
)
def test_an_event_in_a_kubelets_log_is_about_the_pod_that_it_names(subject: str, name: str) -> None:
    line = (
        f'I0129 05:42:59.060605 3736781 event.go:307] "Event occurred" object="{subject}" fieldPath="" kind="Pod" '
        'apiVersion="v1" type="Warning" reason="TopologyAffinityError" '
        'message="Resources cannot be allocated with Topology locality"\n'
    )
    named, diagnosis = diagnose_text(line)
    assert (named, get_code(diagnosis)) == (name, "KubeletTopology")


@pytest.mark.parametrize(
    "words",
    [
        'incompatible with provisioner "b", daemonset overhead={"pods":"7"}, did not tolerate b=x:NoSchedule',
        'incompatible with nodepool "b", did not tolerate b=x:NoSchedule',
    ],
)
def test_a_pod_in_the_fields_behind_the_words_of_a_console_is_the_pod(words: str) -> None:
    fields = '{"commit": "322822a", "pod": "mon/prom-0"}'
    name, diagnosis = diagnose_text(
        f"2023-10-05T05:31:23.571Z\tERROR\tcontroller.provisioner\tCould not schedule pod, {words}\t{fields}\n"
    )
    assert (name, get_code(diagnosis)) == ("mon/prom-0", "AutoscalerCannot")
    assert "commit" not in str(diagnosis.obstacle)


@pytest.mark.parametrize("end", ["", "."])
def test_a_task_behind_kais_words_is_the_pod(end: str) -> None:
    words = "No nodes with enough resources were found: 2 node(s) didn't have enough resources: GPUs"
    name, diagnosis = diagnose_text(f"The log has: {words}, task: <nlp/fit-3>, node: {end}\n")
    assert (name, diagnosis.state) == ("nlp/fit-3", "refused")
    assert "task:" not in diagnosis.sentence.en


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("nvidia-container-cli: device error: unknown device id: no-gpu-has-10MiB-to-run", "GpuShareUnassigned"),
        ("nvidia-container-cli: device error: no-gpu-has-1GiB-to-run: unknown device", "GpuShareUnassigned"),
        ("nvidia-container-cli: device error: GPU-7: unknown device", "ToolkitFailed"),
        ("CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=0", "ToolkitFailed"),
    ],
)
@pytest.mark.parametrize("before", ["", "Failed: ", "The events say: "])
def test_a_container_that_can_not_start_is_read_in_prose(before: str, words: str, code: str) -> None:
    text = f'{before}Error: failed to start container "m": OCI runtime create failed: {words}: unknown\n'
    _, diagnosis = diagnose_text(text)
    assert (diagnosis.state, get_code(diagnosis)) == ("placed", code)


@pytest.mark.parametrize("elision", ["  .....", "...", "  - ...", "\u2026"])
def test_a_manifest_in_which_lines_were_left_out_is_read(elision: str) -> None:
    text = f"""\
The job:
```
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: fit
  namespace: nlp
spec:
  minAvailable: 1
  queue: blue
  tasks:
{elision}
```
It gets:
```
  Normal   Unschedulable  15s  volcano  queue resource quota insufficient
```
"""
    case = read_case_text(text)
    assert next(iter(case.objects.select("PodGroup.scheduling.volcano.sh")))["metadata"]["name"] == "fit"


def test_the_status_of_ray_is_answered_with_what_to_give() -> None:
    status = (
        b"======== Autoscaler status: 2026-02-03 13:41:20.153528 ========\nNode status\n------------\nDemands:",
        b" {'GPU': 2.0}: 3+ pending tasks/actors",
    )
    advice = find_advice(status)
    assert "kubectl describe pods -l ray.io/is-ray-node=yes" in advice
    assert advice.endswith("It says: {'GPU': 2.0}: 3+ pending tasks/actors")
