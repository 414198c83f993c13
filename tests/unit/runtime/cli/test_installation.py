"""One version, wherever it is written, and a licence for everything that the image brings."""

import subprocess
import sys
import tomllib
from pathlib import Path

from runtime.cli.installation import VERSION

ROOT = Path(__file__).parents[4]


def test_the_version_is_that_of_the_project() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == VERSION


def test_manifests_name_the_version_and_the_notice_names_every_package_of_the_services() -> None:
    done = subprocess.run(
        [sys.executable, ".ci/release.py", "check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_notice_names_what_is_under_a_licence_with_duties_of_its_own() -> None:
    notice = (ROOT / "NOTICE").read_text("utf-8").splitlines()
    assert {"certifi MPL-2.0", "aiokafka Apache-2.0"} <= {" ".join(line.split()) for line in notice}
