"""Two pods for each of many nodes: all are placed, and Kafka has every one of them; how fast is shown at the end.

`make bench` and `make stress` take a thousand nodes, the suite fifty.
"""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dev.embedded.control_plane import ControlPlane
from runtime.http.certificate_authority import Authority
from tests.support.backends import Addresses
from tests.support.control_plane.bookkeeping import find_overbooked, list_placements, wait_for_agreement
from tests.support.control_plane.device_plugins import DevicePlugins
from tests.support.control_plane.extender_process import Extender, build_scheduler_configuration
from tests.support.control_plane.objects import a_gpu_node, a_gpu_pod, create_pods, created_nodes, list_pods
from tests.support.harness.topics import provision_all
from tests.support.stress import count_examples
from tests.support.waiting import eventually

NAME = "hami-many"
NODES = count_examples(50)
DEVICES_PER_NODE = 8
PODS = 2 * NODES


@pytest.fixture
def without_kubelets(control_plane: ControlPlane) -> Iterator[None]:
    """Nodes and pods as they were written: what kwok does to thousands of them is not what is measured."""
    control_plane.kwok.stop()
    yield
    control_plane.kwok.start()


@pytest.mark.stress
async def test_twice_as_many_pods_as_nodes_are_scheduled_over_all_of_them(
    control_plane: ControlPlane,
    without_kubelets: None,
    backends: Addresses,
    namespace: str,
    tmp_path: Path,
    figure: Callable[[str], None],
) -> None:
    await provision_all(backends.bootstrap_servers)
    nodes = [a_gpu_node(f"{namespace}-{number}", devices=DEVICES_PER_NODE) for number in range(NODES)]
    pods = [a_gpu_pod(f"pod-{number}", NAME, gpumem=20000, gpucores=40) for number in range(PODS)]
    authority = Authority.create("the tests' authority")
    # Spread, for a node is locked while its device plugin hands out one pod's devices.
    flags = ("--kafka", backends.bootstrap_servers, "--node-policy", "spread")
    with (
        created_nodes(control_plane, nodes),
        Extender(tmp_path, control_plane.kubeconfig, authority, NAME, *flags) as extender,
        DevicePlugins(control_plane, namespace) as plugins,
        control_plane.open_client() as client,
    ):
        control_plane.start_scheduler(build_scheduler_configuration(extender.url, extender.ca, NAME))
        began, cpu = time.monotonic(), extender.get_cpu_seconds()
        create_pods(client, namespace, pods)
        written = time.monotonic() - began
        eventually(
            lambda: len(plugins.bound) == PODS,
            lambda: f"{len(plugins.bound)} of {PODS} are bound\n{extender.log.read_text()[-8000:]}",
            480,
        )
        took, cpu = time.monotonic() - began, extender.get_cpu_seconds() - cpu
        eventually(
            lambda: not extender.sum_metric("schedulerlog_scheduler_spool_bytes"), "Kafka does not have all of it"
        )
        behind = time.monotonic() - began - took
        placed_pods = list_pods(client, namespace)
        assert find_overbooked(list_placements(placed_pods).values()) == {}
        records = await wait_for_agreement(backends.bootstrap_servers, namespace, placed_pods)
        attempts = sum(len(pod_records.chosen) for pod_records in records.values())
    figure(
        f"{PODS} pods over {NODES} nodes x {DEVICES_PER_NODE} devices: {PODS / took:.0f} pods/s "
        f"on {os.cpu_count()} cores ({took:.0f} s, of which {written:.0f} s writing pods; {attempts} attempts; "
        f"our process {1000 * cpu / attempts:.1f} ms of CPU an attempt; Kafka had the last one {behind:.1f} s later)"
    )
