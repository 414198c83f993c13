"""The usual changes, made in a copy of the checkout: the files that docs/changing.md names are all that is edited.

Everything else follows by the commands of `make generate`, and the tests of what changed pass.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.harness.example_changes import CHANGES, make

ROOT = Path(__file__).parents[2]
GENERATE = (
    "schemas generate", "deploy.managed_resources", "deploy.helm_from_kustomize", "tests.support.harness.api_document",
)  # fmt: skip
"""Commands of `make generate` that write what follows from these changes."""
GENERATED = (
    "schemas/generated/", "docs/reasons", "api/openapi.json", "deploy/kustomize/components/scheduler/", "deploy/helm/",
)  # fmt: skip
"""Beginnings of the paths that they write."""
TESTS = (
    "tests/unit/schemas/test_reasons.py",
    "tests/unit/schemas/test_generate.py",
    "tests/unit/engine/hami/test_reason_codes.py",
    "tests/unit/engine/fit/test_device_config.py",
    "tests/unit/ingest/readers/raw_logs/test_raw_logs.py",
    "tests/unit/api/handlers/test_clusters.py",
    "tests/unit/api/http/test_openapi_document.py",
    "tests/contract/test_generated_deploy.py",
    "tests/contract/test_units_of_answers.py",
)
"""Tests of what the changes touch, as they are: each new code, vendor, answer and source is checked by them."""


def run(copy: Path, *words: str) -> str:
    """Run a module of the copy with this Python."""
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    command = [sys.executable, "-m", *words]
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def list_differences(copy: Path) -> set[str]:
    """List the files of the copy that the checkout lacks or has otherwise."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=True).stdout.splitlines()
    return {
        name for name in names if not (ROOT / name).exists() or (ROOT / name).read_bytes() != (copy / name).read_bytes()
    }


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of the checkout with all changes, and with what follows from them."""
    folder = tmp_path_factory.mktemp("changes")
    names = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    for change in CHANGES.values():
        make(change, folder)
    for command in GENERATE:
        run(folder, *command.split())
    yield folder
    shutil.rmtree(folder)


def test_nothing_else_is_edited(copy: Path) -> None:
    edited = {name for change in CHANGES.values() for name in change}
    assert {name for name in list_differences(copy) if not name.startswith(GENERATED)} == edited


def test_the_changes_are_in_what_is_generated(copy: Path) -> None:
    document = json.loads((copy / "api/openapi.json").read_bytes())
    assert document["components"]["examples"]["listNodeNames"]["value"]["items"]
    assert all("device_models" in node for node in document["components"]["examples"]["listNodes"]["value"]["items"])
    assert "NodeNames" in (copy / "schemas/generated/answers/NodeNames.schema.json").read_text()
    assert "### `DeviceTooHot`" in (copy / "docs/reasons.md").read_text()
    assert (
        "{name: example.com/card-memory,"
        in (copy / "deploy/kustomize/components/scheduler/kube-scheduler.yaml").read_text()
    )


def test_a_log_of_the_new_source_is_recognised_and_read(copy: Path) -> None:
    (copy / "plain.log").write_text("plain-scheduler: pending llm/deepseek-0\n")
    code = (
        "from pathlib import Path; from ingest.cases.read_log import read_log; events = []; "
        "read_log(Path('plain.log'), events.extend); print(*(event.pod.name for event in events))"
    )
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    command = [sys.executable, "-c", code]
    printed = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=True).stdout
    assert printed == "deepseek-0\n"


def test_the_tests_of_what_changed_pass(copy: Path) -> None:
    run(copy, "pytest", "-q", "-p", "no:cacheprovider", *TESTS)
