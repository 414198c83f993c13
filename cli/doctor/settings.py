"""Where Kafka, OpenSearch and the cluster are; each may be missing."""

from pathlib import Path
from typing import Annotated, Literal

from runtime.settings.settings import EnvironmentSettings, Flag


class Settings(EnvironmentSettings):
    """What is not named is not checked."""

    kubeconfig: Annotated[Path | None, Flag(metavar="FILE")] = None
    """The cluster; default: that of the pod that this runs in."""
    context: str | None = None
    """A context of the kubeconfig; default: its current one."""
    namespace: str = "schedulerlog"
    """Where schedulerlog is installed."""
    output: Annotated[Literal["text", "json"], Flag(("--output", "-o"), metavar="text|json")] = "text"
    """How the findings are written."""
