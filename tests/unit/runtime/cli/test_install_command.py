"""Message to callers who lack a package: the command of the tool that made the environment."""

from pathlib import Path

import pytest

from runtime.cli.installation import write_install_command


@pytest.mark.parametrize(
    ("left_by_the_tool", "expected"),
    [
        ("pyvenv.cfg", "pip install 'schedulerlog[otel]'"),
        ("pipx_metadata.json", "pipx runpip schedulerlog install 'schedulerlog[otel]'"),
        ("uv-receipt.toml", "uv tool install --with 'schedulerlog[otel]' schedulerlog"),
    ],
)
def test_the_command_is_that_of_the_tool_that_made_the_environment(
    left_by_the_tool: str, expected: str, tmp_path: Path
) -> None:
    (tmp_path / left_by_the_tool).touch()
    assert write_install_command("schedulerlog[otel]", tmp_path) == expected
