"""Our scheduler as a process beside kube-scheduler, as it runs in a cluster: over HTTPS, on the API server."""

import os
import signal
import ssl
import subprocess
import time
from pathlib import Path
from typing import Any, Final, Self

import httpx
import yaml

from runtime.http.certificate_authority import Authority
from tests.support.harness.forked import Forked

DEPLOYED: Final = (
    Path(__file__).parents[3] / "deploy" / "kustomize" / "components" / "scheduler" / "kube-scheduler.yaml"
)
"""Configuration that names the resources of every vendor."""
READY_SECONDS = 60.0
STOP_SECONDS = 30.0


class Extender:
    """``python -m scheduler serve`` on a free port with a certificate for 127.0.0.1; ends with its context."""

    def __init__(self, folder: Path, kubeconfig: Path, authority: Authority, name: str, *flags: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.log, self.ca = folder, folder / "scheduler.log", folder / "ca.crt"
        self.name = name
        self.url = ""
        self._flags = (
            "--kubeconfig", str(kubeconfig), "--name", name, "--spool", str(folder / "spool"), "--listen", "0",
            "--cert-file", str(folder / "tls.crt"), "--key-file", str(folder / "tls.key"), *flags,
        )  # fmt: skip
        self._process: Forked | None = None
        certificate, key = authority.issue(name)
        (folder / "tls.crt").write_bytes(certificate)
        (folder / "tls.key").write_bytes(key)
        self.ca.write_bytes(authority.certificate_pem)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        # In order, for the next one on this cluster would wait for a Lease that was not given back.
        if self.is_alive:
            self.stop()

    @property
    def port(self) -> int | None:
        """Port of the process; None from the moment in which it is killed until the next one listens."""
        _, _, port = self.url.rpartition(":")
        return int(port) if port else None

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, *, until_ready: bool = True) -> None:
        """Return when it answers, and by default when it is ready too."""
        log_start = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            environment = os.environ | {"PYTHONUNBUFFERED": "1"}
            self._process = Forked("scheduler", "serve", *self._flags, stdout=log, stderr=log, env=environment)
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            self.url = self._read_address(log_start) or self.url
            if self.url and (self.is_ready() or not until_ready):
                return
            assert self._process.poll() is None, self.log.read_text()
            time.sleep(0.05)
        raise TimeoutError(self.log.read_text())

    def is_ready(self) -> bool:
        """Tell whether it would answer kube-scheduler now."""
        try:
            return self.get("/readyz").status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    def get(self, path: str) -> httpx.Response:
        context = ssl.create_default_context(cafile=self.ca)
        return httpx.get(f"{self.url}{path}", verify=context, timeout=30, trust_env=False)

    def sum_metric(self, name: str) -> float:
        """Sum a metric over all labels."""
        lines = self.get("/metrics").text.splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.split("{")[0].split(" ")[0] == name)

    def get_cpu_seconds(self) -> float:
        """Return the user and system time that the process has taken so far."""
        assert self._process
        stat = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")

    def kill(self) -> None:
        """Kill it, as a crash would."""
        assert self._process
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self.url = ""

    def stop(self) -> int:
        """Stop it, as an operator would, and return the exit code."""
        assert self._process
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def _read_address(self, log_start: int) -> str:
        lines = self.log.read_bytes()[log_start:].decode(errors="replace").splitlines()
        return next((line.rsplit(" ", 1)[1] for line in lines if "answering kube-scheduler on" in line), "")


def build_scheduler_configuration(url: str, ca: Path, name: str, *, node_cache_capable: bool = True) -> dict[str, Any]:
    """Build a KubeSchedulerConfiguration whose one profile asks the extender at ``url``, as HAMi's chart writes it."""
    deployed = yaml.safe_load(DEPLOYED.read_text())
    extender = {
        "urlPrefix": url,
        "enableHTTPS": True,
        "tlsConfig": {"caFile": str(ca)},
        "filterVerb": "filter",
        "bindVerb": "bind",
        "nodeCacheCapable": node_cache_capable,
        "weight": 1,
        "httpTimeout": "30s",
        "ignorable": False,
        "managedResources": deployed["extenders"][0]["managedResources"],
    }
    return {
        "profiles": [{"schedulerName": name}],
        # Otherwise the extender is shown only a sample of more than 100 nodes.
        "percentageOfNodesToScore": 100,
        # A pod that was refused is tried again soon, so that a test need not wait for it.
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 2,
        "extenders": [extender],
    }
