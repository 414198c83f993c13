"""One version, wherever it is written."""

import tomllib
from pathlib import Path

from process.version import VERSION


def test_the_version_is_that_of_the_project() -> None:
    assert tomllib.loads(Path("pyproject.toml").read_text())["project"]["version"] == VERSION
