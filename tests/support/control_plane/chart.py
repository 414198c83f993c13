"""The chart of deploy/helm: rendered by Helm, and as releases on the control plane."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from dev.embedded.control_plane import ControlPlane
from dev.embedded.control_plane.build import KUBERNETES_VERSION
from schemas.json_types import Json
from tests.support.control_plane.deployed import KUSTOMIZE, NAMESPACE

CHART: Final = KUSTOMIZE.with_name("helm")
EXAMPLES: Final = tuple(sorted(path.stem for path in (CHART / "examples").glob("*.yaml")))
IMAGE: Final = "image.repository=registry.example.com/gpu/schedulerlog"


@dataclass(frozen=True, slots=True)
class Helm:
    """``folder`` keeps what Helm caches, apart from that of the machine's user."""

    program: Path
    folder: Path

    def run(self, *arguments: str, cluster: ControlPlane | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command; the caller looks at its exit status."""
        folders = {f"HELM_{name}_HOME": str(self.folder / name.lower()) for name in ("CACHE", "CONFIG", "DATA")}
        access = {"KUBECONFIG": str(cluster.kubeconfig)} if cluster else {"KUBECONFIG": os.devnull}
        environment = {**os.environ, **folders, **access}
        command = [str(self.program), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)

    def run_template(self, chart: Path, release: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Render a chart for the version of the control plane."""
        return self.run("template", release, str(chart), "--kube-version", KUBERNETES_VERSION, *arguments)

    def render(self, *arguments: str, release: str = "schedulerlog", namespace: str = NAMESPACE) -> list[Json]:
        """Render the objects that an installation with these arguments would make, without the tests."""
        done = self.run_template(CHART, release, "--namespace", namespace, "--skip-tests", *arguments)
        assert done.returncode == 0, done.stderr
        return [item for item in yaml.load_all(done.stdout, yaml.CSafeLoader) if item]

    def explain_refusal(self, *arguments: str) -> str:
        """Explain why Helm refuses these values; empty if it takes them."""
        done = self.run_template(CHART, "schedulerlog", *arguments)
        return done.stderr if done.returncode else ""


def to_flags(example: str, *values: str) -> Sequence[str]:
    """Write the flags for an example of deploy/helm/examples and single values over it."""
    return ("-f", str(CHART / "examples" / f"{example}.yaml"), *(word for value in values for word in ("--set", value)))
