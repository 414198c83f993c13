"""The control plane that the other tests stand on, from Python and from the command line."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dev.embedded.control_plane import ControlPlane
from dev.embedded.errors import ServerError
from dev.embedded.process import read_start_time
from tests.support.control_plane.objects import create, created_nodes
from tests.support.waiting import eventually

HOLDS_ONE = """\
import json, time
from dev.embedded.control_plane import control_plane
with control_plane() as cluster:
    print(json.dumps([program.pid for program in cluster.programs.values() if program.is_alive]), flush=True)
    time.sleep(600)
"""


def run_embedded(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dev.embedded", "kubernetes", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_it_says_the_version_that_it_was_built_from(control_plane: ControlPlane) -> None:
    with control_plane.open_client() as client:
        assert client.get("/version").json()["gitVersion"] == "v1.36.3"


def test_a_pod_is_scheduled_and_runs(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.start_scheduler({})
    pods = f"/api/v1/namespaces/{namespace}/pods"
    container = {"name": "main", "image": "none"}
    with created_nodes(control_plane, [{"metadata": {"name": "smoke-node"}}]), control_plane.open_client() as client:
        create(client, pods, {"metadata": {"name": "smoke"}, "spec": {"containers": [container]}})
        eventually(lambda: client.get(f"{pods}/smoke").json()["status"]["phase"] == "Running", "the pod does not run")


def test_what_was_written_is_there_after_a_kill(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.api_server.kill()
    control_plane.api_server.start()
    assert namespace in control_plane.run_kubectl("get", "namespaces", "--output", "name")


def test_a_configuration_that_is_refused_is_shown_with_the_words_of_kube_scheduler(control_plane: ControlPlane) -> None:
    with pytest.raises(ServerError, match=r'unknown field \\"extender\\"'):
        control_plane.start_scheduler({"extender": []})
    control_plane.start_scheduler({})


def test_nothing_outlives_a_program_that_is_killed(control_plane: ControlPlane, tmp_path: Path) -> None:
    # Who is killed can't remove its folder: in the test's own, which pytest removes, and not in the run's.
    variables = {"PYTHONPATH": ".", "TMPDIR": str(tmp_path)}
    holder = subprocess.Popen([sys.executable, "-c", HOLDS_ONE], stdout=subprocess.PIPE, env=os.environ | variables)
    with holder:
        assert holder.stdout
        pids: list[int] = json.loads(holder.stdout.readline())
        assert len(pids) == 3
        holder.send_signal(signal.SIGKILL)
        eventually(lambda: not any(read_start_time(pid) for pid in pids), "some of it still runs")


def test_from_the_command_line_it_runs_until_it_is_stopped(control_plane: ControlPlane, tmp_path: Path) -> None:
    options = ("--dir", str(tmp_path))
    up = run_embedded("up", "--no-kwok", *options)
    try:
        assert up.returncode == 0, up.stderr
        status = run_embedded("status", *options)
        assert status.returncode == 0
        assert [line.split()[:2] for line in status.stdout.splitlines()] == [
            ["etcd", "up"], ["kube-apiserver", "up"], ["kube-controller-manager", "up"], ["kube-scheduler", "up"],
        ]  # fmt: skip
        shell = f"{run_embedded('env', *options).stdout}\nkubectl create namespace from-a-shell --output name"
        done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=True)
        assert done.stdout == "namespace/from-a-shell\n"
    finally:
        down = run_embedded("down", *options)
    assert "kube-apiserver" in down.stderr
    assert run_embedded("status", *options).returncode == 1
    again = run_embedded("up", "--no-kwok", "--no-scheduler", *options)
    try:
        assert again.returncode == 0, again.stderr
        shell = f"{run_embedded('env', *options).stdout}\nkubectl get namespace from-a-shell --output name"
        assert subprocess.run(["bash", "-c", shell], check=False, capture_output=True).returncode == 0
    finally:
        run_embedded("down", *options)
