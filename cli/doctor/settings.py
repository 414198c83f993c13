"""Settings of the doctor: the addresses of Kafka, OpenSearch and the cluster; each may be missing."""

from pathlib import Path
from typing import Annotated, Literal

from runtime.settings.settings import EnvironmentSettings, Flag


class Settings(EnvironmentSettings):
    """Settings of the doctor; it checks only what they name."""

    kubeconfig: Annotated[Path | None, Flag(metavar="FILE")] = None
    """A kubeconfig of the cluster; default: the cluster of the pod in which this runs."""
    context: str | None = None
    """A context of the kubeconfig; default: its current one."""
    namespace: str = "schedulerlog"
    """The namespace in which schedulerlog is installed."""
    output: Annotated[Literal["text", "json"], Flag(("--output", "-o"), metavar="text|json")] = "text"
    """The form of the findings."""
