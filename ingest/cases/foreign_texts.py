"""Texts that people give in the place of a log or objects, and what to give instead. Pure."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

_OBJECTS: Final = "`kubectl get pods,nodes,events -A -o yaml > objects.yaml`"


class _ForeignText(NamedTuple):
    """A kind of text, recognised by its first lines; the groups of the pattern fill the places of the advice."""

    pattern: re.Pattern[bytes]
    advice: str
    quote: re.Pattern[bytes] | None = None
    """Words of the text that say more than its kind."""
    is_cause: bool = False
    """Such a line explains why a pod of the same text waits."""


_WEBHOOK: Final = rb"failed calling webhook \\?\"(?P<webhook>[\w.-]+)\\?\"[^\n]*?"
_PASSED_BY: Final = (
    "With `failurePolicy: Ignore` pods are made without it meanwhile and stay with the scheduler that they name (pods "
    "for HAMi then with default-scheduler); with Fail they are not made"
)
_DESCRIBE_POD: Final = "For the pod's own events give `kubectl describe pod`"
_FOREIGN_TEXTS: Final = (
    _ForeignText(
        re.compile(_WEBHOOK + rb"x509: (?P<cause>[^\n\"\\]+)"),
        "The API server could not call the webhook {webhook}, because it does not trust its certificate ({cause}): the "
        "caBundle of the MutatingWebhookConfiguration is not the authority of the certificate that the service shows. "
        f"Let the chart's certificate job run again, or install the release again. {_PASSED_BY}",
        is_cause=True,
    ),
    _ForeignText(
        re.compile(
            _WEBHOOK + rb"(?P<cause>context deadline exceeded|Client\.Timeout exceeded|connect: [a-z ]+|no endpoints "
            rb"available|service \\?\"[^\n\"]*\" not found|connection reset by peer|EOF)"
        ),
        "The API server could not reach the webhook {webhook} ({cause}): check that the pods behind its service are "
        f"ready, and that the API server's machine reaches the service's port over the network. {_PASSED_BY}",
        is_cause=True,
    ),
    _ForeignText(
        re.compile(
            rb"\s(?:INFO|WARN|ERROR|DEBUG)\s+(?:(?:core|shim)\.[\w.]+\s+)?(?:objects|scheduler|cache|client|ugm|shim)/"
            rb"\w+\.go:\d+\s"
        ),
        "It is the log of YuniKorn, which names a pod by its UID (allocationKey, taskID) and its application: find the "
        "pod with `kubectl get pods -A -o yaml`, and give `kubectl describe pod`, whose events (Informational, "
        "PodUnschedulable) have the queue, the node or the quota that is in its way",
        re.compile(
            rb"Application is already reserved on node[^\n]*|"
            rb"(?:[Ff]ailed to|not enough|[Rr]ejected|does not fit|no placement|placeholder timeout)[^\n]*"
        ),
    ),
    _ForeignText(
        re.compile(rb"\b(?:static_autoscaler|scale_up|orchestrator|filter_out_schedulable)\.go:\d+\]"),
        f"It is the log of the cluster autoscaler, which places no pods. {_DESCRIBE_POD}",
        re.compile(
            rb"(?:cannot put|[Pp]od \S+ can't be scheduled on)[^\n]*?reasons?: [^\n;]+|NotTriggerScaleUp'? [^\n]+"
        ),
    ),
    _ForeignText(
        re.compile(rb"invalid allocation requs?e?st: request GPU memory (?P<memory>\d+) can't be satisfied"),
        "It is the log of gpushare's device plugin: the kubelet asked it for {memory} units of GPU memory, and no pod "
        "that waits on this node and asks for as much was placed by gpushare's scheduler extender, whose pods have the "
        "annotation ALIYUN_COM_GPU_MEM_ASSUME_TIME. A scheduler that does not ask the extender placed the pod, or "
        "`nodeName` names the node: check `schedulerName`, and that the scheduler's configuration has the extender. "
        "Waiting does not help",
        re.compile(rb"No assume timestamp for pod ?[^\n]+"),
        is_cause=True,
    ),
    _ForeignText(
        re.compile(rb"autoscaler could not find a node type to satisfy the request:? ?(?P<request>\[\{[^\n\]]*\}\])"),
        "It is the log of Ray's autoscaler, which makes no pod: no worker group of the RayCluster declares as much as "
        "{request}. Ray counts what `rayStartParams` (num-cpus, num-gpus, resources) or the container's limits say, "
        "and a task that needs more than one worker has never fits. Raise the limits or the declared resources of a "
        "group, add one with maxReplicas above 0, or ask for less; no waiting helps",
    ),
    _ForeignText(
        re.compile(rb"=+ Autoscaler status: \d|^Node status\r?\n-{5}", re.MULTILINE),
        "It is the output of `ray status`, which counts Ray's nodes and names no pod: give `kubectl describe pods -l "
        "ray.io/is-ray-node=yes`, and `kubectl describe raycluster` for pods that were not made",
        re.compile(rb"\{'[^\n]*\}: \d+\+? pending[^\n]*|[^\n]*: (?:NodeTerminated|NodeLaunchException)[^\n]*"),
    ),
    _ForeignText(
        re.compile(
            rb"Queue <(?P<queue>[^>\n]+)> can not reclaim, deserved <(?P<deserved>[^>\n]*)>, "
            rb"allocated <(?P<allocated>[^>\n]*)>"
        ),
        "It is the log of Volcano's reclaim, without an attempt of a pod: queue {queue} takes nothing back from other "
        "queues, because a queue may reclaim only up to what it deserves. It deserves {deserved}, and holds "
        "{allocated}. Its jobs wait until others of the queue end; otherwise ask for less, or have its share raised",
    ),
    _ForeignText(
        re.compile(
            rb"Failed to get node devices\. nodeName (?P<on>[^\s,]+), deviceType (?P<type>[^\s,]+), "
            rb"error annos not found (?P<annotation>[^\s\"]+)"
        ),
        "It is a log of Volcano's scheduler, without an attempt of a pod: node {on} lacks the annotation {annotation}, "
        "in which the device plugin for {type} lists its devices. A node that has none lacks it rightly; on one that "
        "has some the plugin does not run, or could not register",
    ),
    _ForeignText(
        re.compile(
            rb"(?:[Ff]ailed to initialize NVML|[Cc]ould not load NVML|nvml init failed|"
            rb"Incompatible (?:strategy|platform) detected)[^\n]*"
        ),
        "It is the log of a device plugin{of_node} that does not reach the driver (NVML), so that the node offers no "
        "devices: the driver is not loaded there, the plugin's container does not get its libraries and device files "
        "(the runtime is not set to nvidia, or the path of the driver is not mounted: HAMi's "
        "`devicePlugin.nvidiaDriverRoot`, the operator's `/run/nvidia/driver`), or it may not open them (privileged). "
        f"It is for the administrator of the node. {_DESCRIBE_POD}",
        re.compile(
            rb"[Ff]ailed to initialize NVML: [^\n]+|[Cc]ould not load NVML[^\n]*|nvml init failed[^\n]*|"
            rb"Incompatible (?:strategy|platform) detected[^\n]*"
        ),
        is_cause=True,
    ),
    _ForeignText(
        re.compile(
            rb"Retr(?:ei|ie)ving plugins|Starting [FO]S watcher|[Ss]tart(?:ing)? work(?:ing)? on (?:the devices|node)"
        ),
        "It is the log of a device plugin{of_node}, which is about the devices of its node and about no pod: show it "
        f"to the administrator of the node. {_DESCRIBE_POD}",
        re.compile(
            rb"No devices found[^\n]*|[Ff]ailed to initialize NVML: [^\n]+|[Cc]ould not load NVML[^\n]*|panic: [^\n]+|"
            rb"nvml [^\n]* err= ?[^\n]+"
        ),
    ),
    _ForeignText(
        re.compile(
            rb"(?P<cause>unknown (?:shorthand )?flag: [^\n]+|unknown flag [^\n]+|flag provided but not defined: [^\n]+|"
            rb"no kind \"KubeSchedulerConfiguration\" is registered for version [^\n]+|"
            rb"strict decoding error: [^\n]+|bind: address already in use)"
        ),
        "It is the output of {program}, which does not start, so that no pod that names its scheduler is tried: "
        "{cause}. A flag or a version of the configuration that the program does not know is that of another release: "
        "the image's tag has to be of the release for which the chart or the manifest was written, for kube-scheduler "
        "that of the cluster (HAMi's chart: imageTag of scheduler.kubeScheduler). It is for the administrator",
    ),
    _ForeignText(re.compile(rb"\APK\x03\x04"), "It is a zip archive: unpack it and name the folder"),
    _ForeignText(
        re.compile(rb"\A(?:\x89PNG|\xff\xd8\xff|GIF8|RIFF....WEBP)", re.DOTALL),
        "It is a picture: copy the text itself into a file",
    ),
    _ForeignText(re.compile(rb"\A%PDF-"), "It is a PDF: copy the text itself into a file"),
    _ForeignText(re.compile(rb"\A\s*<(?:!DOCTYPE html|html)\b", re.IGNORECASE), "It is a web page: save the raw text"),
    _ForeignText(
        re.compile(
            rb"^(?:NAMESPACE +)?NAME +READY +STATUS +RESTARTS|^(?:\S+ +)?\S+ +\d+/\d+ +[A-Z]\S+ +\d+ +\S*\d[smhd]\b",
            re.MULTILINE,
        ),
        f"It is the table of `kubectl get pods`, which has no reasons: give the objects, {_OBJECTS}",
    ),
    _ForeignText(
        re.compile(rb"^NAME +STATUS +ROLES +AGE", re.MULTILINE),
        f"It is the table of `kubectl get nodes`, which has no amounts: give the objects, {_OBJECTS}",
    ),
    _ForeignText(
        re.compile(rb"NVIDIA-SMI|\bnpu-smi\b"),
        f"It shows what devices use, and schedulers count what pods have requested: give the objects, {_OBJECTS}",
    ),
)
_NODE: Final = re.compile(rb"\b(?:[Ss]tart(?:ing)? work(?:ing)? on node|node[Nn]ame[=:]) ?\"?(?P<node>[a-z0-9][\w.-]*)")
"""Name of the node in the log of a program that runs on it."""
_PROGRAM: Final = re.compile(rb"^(?:Usage:\s+|Usage of |Defaulted container \")(?P<program>[\w./-]+)", re.MULTILINE)
"""Name of the program that prints how it is used."""
SCHEDULERS_LOG: Final = "Is it the log of the container vgpu-scheduler-extender, or of KAI's scheduler?"


def find_advice(lines: Iterable[bytes]) -> str:
    """Find the advice for a kind of text that is recognised; empty for others."""
    head = b"\n".join(lines)
    return next((advice for text in _FOREIGN_TEXTS if (advice := _fill_advice(text, head))), "")


def find_cause(text: bytes) -> str:
    """Find the advice for lines of another program in a text about a pod; empty where none explains a wait."""
    return next((advice for kind in _FOREIGN_TEXTS if kind.is_cause and (advice := _fill_advice(kind, text))), "")


def _fill_advice(text: _ForeignText, head: bytes) -> str:
    match = text.pattern.search(head)
    if match is None:
        return ""
    quote = text.quote.search(head) if text.quote else None
    node = _NODE.search(head)
    groups = {name: group.decode("utf-8", "replace").strip() for name, group in match.groupdict().items() if group}
    program = _PROGRAM.search(head)
    groups["program"] = program["program"].decode("utf-8", "replace") if program else "a program"
    groups["of_node"] = f" of node {node['node'].decode('utf-8', 'replace')}" if node else ""
    advice = f"{text.advice.format_map(groups)}."
    return f"{advice} It says: {quote[0].decode('utf-8', 'replace').strip()}" if quote else advice
