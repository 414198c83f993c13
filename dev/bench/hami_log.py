"""Generates a log as HAMi prints it at -v=5, from the lines of one attempt, for any number of nodes."""

from collections.abc import Iterator
from typing import Final

DEVICES_PER_NODE: Final = 8

_REQUEST: Final = b'{"Nums":2,"Type":"NVIDIA","Memreq":20480,"MemPercentagereq":101,"Coresreq":20}'


def iterate_hami_log(nodes: int, pod: bytes = b"deepseek-a") -> Iterator[bytes]:
    """Iterate over the lines of one refused attempt: 53 for each node, 184 bytes on average, as measured with HAMi."""
    yield _format_line(
        0,
        b"scheduler.go:1068",
        b'"Starting schedule filter process" pod="%b" uuid="uid-%b" namespace="llm"' % (pod, pod),
    )
    yield _format_line(
        1,
        b"devices.go:688",
        b'"Resource requirements collected" pod="llm/%b" requests=[{"NVIDIA":%b}]' % (pod, _REQUEST),
    )
    for node in range(nodes):
        yield from _iterate_node(node, pod)
    yield _format_line(9, b"scheduler.go:1110", b'"No available nodes meet the required scores" pod="%b"' % pod)
    message = b"no available node, %d nodes do not meet" % nodes
    yield _format_line(
        9,
        b"event.go:389",
        b'"Event occurred" object="llm/%b" fieldPath="" kind="Pod" apiVersion="v1" type="Warning"'
        b' reason="FilteringFailed" message="%b"' % (pod, message),
    )


def _format_line(tick: int, location: bytes, text: bytes) -> bytes:
    return b"I1121 03:06:23.%06d   32118 %b] %b\n" % (tick % 1_000_000, location, text)


def _iterate_node(node: int, pod: bytes) -> Iterator[bytes]:
    name = b"gpu-node-%05d" % node
    yield _format_line(node, b"node_policy.go:113", b"node %b used 9, usedCore 90, usedMem 41645," % name)
    yield _format_line(node, b"node_policy.go:129", b"node %b computer default score is 3.124888" % name)
    for device in range(DEVICES_PER_NODE):
        uuid = _format_uuid(node, device)
        yield _format_line(node, b"gpu_policy.go:215", b"device %b user 1, userCore 30, userMem 4259," % uuid)
        yield _format_line(node, b"gpu_policy.go:221", b"device %b computer score is 6.799744" % uuid)
    yield _format_line(node, b"score.go:38", b"devices status")
    for device in range(DEVICES_PER_NODE):
        # The longest lines of a real log: a third of its bytes are such dumps, which a reader must pass over quickly.
        yield _format_line(node, b"score.go:39", _format_status(_format_uuid(node, device), device))
    yield _format_line(
        node,
        b"device.go:719",
        b'"Allocating device for container request" pod="llm/%b" card request=%b' % (pod, _REQUEST),
    )
    for device in range(DEVICES_PER_NODE):
        yield from _iterate_device(node, device, pod)
    reason = b"4/8 CardInsufficientCore, 4/8 CardInsufficientMemory"
    yield _format_line(
        node, b"score.go:275", b'"NodeUnfitPod" pod="llm/%b" node="%b" reason="%b"' % (pod, name, reason)
    )


def _iterate_device(node: int, device: int, pod: bytes) -> Iterator[bytes]:
    uuid = _format_uuid(node, device)
    numbers = b"Memreq=20480 MemPercentagereq=101 Coresreq=20 Nums=2 device index=%d" % device
    yield _format_line(node, b"device.go:729", b'"scoring pod" pod="llm/%b" device="%b" %b' % (pod, uuid, numbers))
    yield _format_line(node, b"device.go:690", b"Allocating... 20480 cores 20")
    code, numbers_of_code = (
        (b"CardInsufficientMemory", b"device total memory=45912 device used memory=41645 request memory=20480")
        # Two reasons in turns: a node whose devices all fail alike would be read from fewer distinct lines.
        if device % 2
        else (b"CardInsufficientCore", b"device total core=100 device used core=90 request cores=20")
    )
    yield _format_line(
        node,
        b"device.go:791",
        b'"%b" pod="llm/%b" device="%b" device index=%d %b' % (code, pod, uuid, device, numbers_of_code),
    )


def _format_uuid(node: int, device: int) -> bytes:
    return b"GPU-%08x-edb2-41d1-bc91-f46165c6%04x" % (node, device)


def _format_status(uuid: bytes, device: int) -> bytes:
    return (
        b'"device status" device id="%b" device detail={"Device":{"ID":"%b","Index":%d,"Used":1,"Count":10,'
        b'"Usedmem":41645,"Totalmem":45912,"Totalcore":100,"Usedcores":90,"Mode":"hami-core","MigProfiles":null,"Numa":0,'
        b'"Type":"NVIDIA-L40S","Health":true,"PodInfos":null},"Score":0}' % (uuid, uuid, device)
    )
