"""This installation: its version, and the command that adds a package to it."""

import sys
from pathlib import Path
from typing import Final

# The program runs from its sources, where no package metadata names it; a test compares it with pyproject.toml.
VERSION: Final = "0.1.0"


def write_install_command(requirement: str, prefix: Path = Path(sys.prefix)) -> str:
    """Write the command for a shell. requirement: as pip reads it (``schedulerlog[otel]``). prefix: the environment's
    folder."""
    # pipx and uv keep an environment for each command, which `pip` on the PATH does not reach.
    if (prefix / "pipx_metadata.json").exists():
        return f"pipx runpip schedulerlog install '{requirement}'"
    if (prefix / "uv-receipt.toml").exists():
        return f"uv tool install --with '{requirement}' schedulerlog"
    return f"pip install '{requirement}'"
