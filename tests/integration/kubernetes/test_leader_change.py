"""Two schedulers on one cluster: the one that leads is killed under load."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from dev.embedded.control_plane import ControlPlane
from runtime.http.certificate_authority import Authority
from schemas.json_types import Json
from tests.support.backends import Addresses
from tests.support.control_plane.bookkeeping import find_overbooked, list_astray, list_placements, wait_for_agreement
from tests.support.control_plane.device_plugins import DevicePlugins
from tests.support.control_plane.extender_process import Extender, build_scheduler_configuration
from tests.support.control_plane.objects import (
    DEVICES_PER_NODE,
    a_gpu_node,
    a_gpu_pod,
    create_pods,
    created_nodes,
    list_pods,
)
from tests.support.harness.topics import provision_all
from tests.support.tcp_proxy import TcpProxy
from tests.support.waiting import eventually

NAME = "hami-two"
NODES = 20
PODS_PER_DEVICE = 3
PODS = NODES * DEVICES_PER_NODE * PODS_PER_DEVICE
LEASE = (
    "--leader-elect", "--leader-elect-lease-duration", "3s", "--leader-elect-renew-deadline", "2s",
    "--leader-elect-retry-period", "500ms",
)  # fmt: skip


@pytest.fixture
def both(control_plane: ControlPlane, backends: Addresses, namespace: str, tmp_path: Path) -> Iterator[list[Extender]]:
    """Two schedulers that want the same Lease."""
    authority = Authority.create("the tests' authority")
    flags = (
        "--kafka", backends.bootstrap_servers, "--node-policy", "spread", "--node-lock-timeout", "5s", *LEASE,
        "--leader-elect-resource-namespace", namespace,
    )  # fmt: skip
    with ExitStack() as stack:
        extenders = []
        for name in ("one", "two"):
            extender = Extender(tmp_path / name, control_plane.kubeconfig, authority, NAME, *flags)
            extender.start(until_ready=False)
            stack.callback(extender.__exit__)
            extenders.append(extender)
        yield extenders


def find_leader(extenders: Sequence[Extender]) -> Extender | None:
    """Find the one that says it is ready; a Service sends its requests there."""
    ready = [extender for extender in extenders if extender.is_alive and extender.is_ready()]
    assert len(ready) < 2, "both say that they lead"
    return ready[0] if ready else None


def wait_for_leader(extenders: Sequence[Extender]) -> Extender:
    leader = eventually(lambda: find_leader(extenders), lambda: f"nobody leads\n{read_logs(extenders)}")
    assert leader
    return leader


def build_port_finder(extenders: Sequence[Extender]) -> Callable[[], int | None]:
    def find() -> int | None:
        leader = find_leader(extenders)
        return leader.port if leader else None

    return find


async def test_leaders_are_killed_under_load_and_no_device_is_assigned_twice(
    control_plane: ControlPlane,
    both: list[Extender],
    backends: Addresses,
    namespace: str,
    figure: Callable[[str], None],
) -> None:
    await provision_all(backends.bootstrap_servers)
    nodes = [a_gpu_node(f"{namespace}-{number}") for number in range(NODES)]
    # Together they take all cores but a hundredth of every device: one reservation forgotten or doubled shows.
    pods = [a_gpu_pod(f"pod-{number}", NAME, gpumem=13000, gpucores=33) for number in range(PODS)]
    wait_for_leader(both)
    with (
        TcpProxy(build_port_finder(both)) as service,
        created_nodes(control_plane, nodes),
        DevicePlugins(control_plane, namespace),
        control_plane.open_client() as client,
    ):
        url = f"https://127.0.0.1:{service.port}"
        control_plane.start_scheduler(build_scheduler_configuration(url, both[0].ca, NAME))
        create_pods(client, namespace, pods)
        gaps = []
        for bound in (PODS // 5, 2 * PODS // 5, 3 * PODS // 5):
            eventually(lambda: len(bound_pods(list_pods(client, namespace))) >= bound, lambda: read_logs(both))  # noqa: B023
            gaps.append(change_leader(both))
        eventually(lambda: len(bound_pods(list_pods(client, namespace))) == PODS, lambda: read_logs(both))
        placed_pods = list_pods(client, namespace)
        assert find_overbooked(list_placements(placed_pods).values()) == {}
        assert list_astray(placed_pods) == []
        # The killed ones had decisions in their spools that nobody has sent: all of them are up again for that.
        assert all(extender.is_alive for extender in both), read_logs(both)
        # What they were binding when they were killed is published too.
        await wait_for_agreement(backends.bootstrap_servers, namespace, placed_pods)
        settled = sum(extender.log.read_text().count(": was bound") for extender in both)
        figure(
            f"leader change: {PODS} pods over {len(gaps)} killed leaders; the next one answered after {gaps} s; "
            f"{settled} binds that only the API server knew of were published by their scheduler's next life"
        )


def change_leader(both: list[Extender]) -> float:
    """Kill who leads and start it again; returns the seconds until the other one answers."""
    killed = wait_for_leader(both)
    began = time.monotonic()
    killed.kill()
    (other,) = (extender for extender in both if extender is not killed)
    eventually(other.is_ready, lambda: read_logs(both))
    gap = time.monotonic() - began
    killed.start(until_ready=False)
    return round(gap, 1)


def bound_pods(pods: list[Json]) -> list[Json]:
    return [pod for pod in pods if pod["spec"].get("nodeName")]


def read_logs(both: Sequence[Extender]) -> str:
    return "\n".join(extender.log.read_text()[-4000:] for extender in both)
