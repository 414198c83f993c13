"""Generates a log as KAI-Scheduler v0.13 prints it at --v=8, from the lines of real sessions."""

import re
from collections.abc import Iterable, Iterator

import orjson

DEVICES_PER_NODE = 8
LINES_A_MILLISECOND = 30
"""Measured with KAI: 18 to 66."""

_HEAD = re.compile(rb"(\S+)\t(\w+)\t(\S+)\t\[(\w+)\] (?:\[(\w+)\] )?(.*)", re.DOTALL)

_REQUESTED = "GPU: 0, CPU: 1 (cores), memory: 1 (GB)"
_IDLE = "CPU: 19998 (cores), memory: 18 (GB), Gpus: 0"
_NONE = "CPU: 0 (cores), memory: 0 (GB), Gpus: 0"


def iterate_kai_log(nodes: int, pods: int, session: str) -> Iterator[bytes]:
    """Iterate over one session: every node has eight shared devices in use, and ``pods`` pods fit on none."""
    for number, line in enumerate(_iterate_messages(nodes, pods, session)):
        # Continuation lines of a message have no time of their own.
        yield line if line.startswith(b"\t ") else _stamp(number // LINES_A_MILLISECOND) + line


def _stamp(milliseconds: int) -> bytes:
    seconds, remainder = divmod(milliseconds, 1000)
    return b"2026-11-21T03:%02d:%02d.%03dZ" % (*divmod(seconds, 60), remainder)


def _iterate_messages(nodes: int, pods: int, session: str) -> Iterator[bytes]:
    for node in range(nodes):
        for device in range(DEVICES_PER_NODE):
            yield from _iterate_device(session, node, device)
    for pod in range(pods):
        yield from _iterate_pod(session, nodes, pod)


def to_json_lines(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Convert the messages to the form of v0.17 with ``--log-json``: a message of several lines becomes one line."""
    message = b""
    for line in lines:
        if line.startswith(b"\t"):
            message += line
            continue
        if message:
            yield _to_json_line(message)
        message = line
    yield _to_json_line(message)


def _to_json_line(message: bytes) -> bytes:
    match = _HEAD.fullmatch(message.rstrip(b"\n"))
    assert match
    stamp, level, caller, session, action, text = (part.decode() if part else "" for part in match.groups())
    fields = {"level": level, "ts": stamp, "caller": caller, "msg": text, "sessionID": session}
    # In KAI's own output the key occurs twice if there is an action.
    again = f',"sessionID":"{session}","action":"{action}"' if action else ""
    return orjson.dumps(fields)[:-1] + again.encode() + b"}\n"


def _format_line(session: str, caller: str, text: str, action: str = "[allocate] ") -> bytes:
    return f"\tINFO\t{caller}:90\t[{session}] {action}{text}\n".encode()


def _iterate_device(session: str, node: int, device: int) -> Iterator[bytes]:
    busy, group, caller = f"team-a/busy-{node}-{device}", f"grp-{node}-{device}", "node_info/gpu_sharing_node_info.go"
    free = f"CPU: 19998 (cores), memory: 18 (GB), Gpus: {DEVICES_PER_NODE - device}"
    state = f"idle <{free}>, used <{_NONE}>, releasing <{_NONE}>"
    dump = f"status: <Running>, node: <Node (gpu-{node}): {state}, taints <[]>"
    yield _format_line(session, caller, f"About to add shared podsInfo: <{busy}>, {dump}", "")
    for other in range(device + 1):
        yield f"\t {other}: Pod (busy-{node}-{other}:team-a): job busy, status Running, resreq {_REQUESTED}\n".encode()
    for moment, memory in (("About to add", 0), ("Added", 20000)):
        numbers = f"releasingSharedGPU: <0> AllocatedSharedGPUsMemory <{memory}>, UsedSharedGPUsMemory: <{memory}>"
        yield _format_line(session, caller, f"{moment} shared podsInfo: <{busy}>, gpuGroup: <[{group}]> {numbers}", "")


def _iterate_pod(session: str, nodes: int, number: int) -> Iterator[bytes]:
    pod, updater = f"team-a/infer-{number}", "status_updater/default_status_updater.go"
    job = f"Attempting to allocate job: <{pod}> of queue <team-a>, resources: <{_IDLE}>"
    yield _format_line(session, "allocate/allocate.go", job)
    task = f"Looking for best node for task - Task: <{pod}>, init requested: <{_REQUESTED}>."
    yield _format_line(session, "common/allocate.go", task)
    for node in range(nodes):
        yield from _iterate_node(session, pod, f"gpu-{node}")
    yield _format_line(session, "common/allocate.go", f"Failed statement allocate for task: <{pod}>")
    why = f"PodSchedulingErrors: Resources were not found for pod {pod} due to: Unable to schedule pod."
    yield _format_line(session, updater, f"setting message for task: infer-{number}, {why}", "")
    yield _format_line(session, updater, f"Updating pod condition for {pod} to (PodScheduled==False)", "")


def _iterate_node(session: str, pod: str, node: str) -> Iterator[bytes]:
    estimate = f"Estimating Task: <{pod}> Job: <infer> for node: <{node}>"
    idle = "that has <0.000000> idle GPUs and <0.000000> releasing GPUs and <0.000000> allocated GPUs. Score: 0.000000"
    refused = f"Task GPU {pod} is not allocatable on node {node}"
    short = f"Node <{node}> with limited resources, releasing: <{_NONE}>, idle: <{_IDLE}>"
    yield _format_line(session, "node_info/node_info.go", refused)
    yield _format_line(session, "nodeavailability/nodeavailability.go", f"{estimate} {idle}")
    yield _format_line(session, "gpusharingorder/gpusharingorder.go", f"{estimate}. Score: 0.000000")
    free = f"{estimate} that has <0.000000> non allocated nvidia.com/gpu. Score: 0.000000"
    yield _format_line(session, "nodeplacement/pack.go", free)
    score = f"Overall priority node score of node <{node}> for task <{pod}> is: 0.000000"
    yield _format_line(session, "framework/session.go", score)
    checked = f"Checking if task <{pod}> is allocatable on node <{node}>: <{_REQUESTED}> vs. <{_IDLE}>"
    yield _format_line(session, "framework/session.go", checked)
    yield _format_line(session, "node_info/node_info.go", refused)
    refusal = f"Not enough resources for task: <{pod}>, init requested: <{_REQUESTED}>. {short}"
    yield _format_line(session, "framework/session.go", refusal)
