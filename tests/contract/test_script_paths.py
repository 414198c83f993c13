"""Paths of the project that scripts, make files and workflows name exist, and modules that are run are in order."""

import re
import subprocess
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
SCRIPT = re.compile(
    r"\.sh$|^\.ci/(run|docker-engine|chromium|image|overlay)$|(^|/)(Makefile|Dockerfile)$|^\.github/.*\.ya?ml$|\.pre-commit"
)
PACKAGES = sorted({file.split("/")[0] for file in FILES if "/" in file})
PATHS = {"/".join(parts[:count]) for parts in (file.split("/") for file in FILES) for count in range(1, len(parts) + 1)}
BUILT = re.compile(r"\.venv|\.run|headlamp/dist|dist/")
"""Paths that commands make and git ignores."""

PACKAGE = "|".join(map(re.escape, PACKAGES))
MENTION = re.compile(rf"\$(?:repository|\{{?PWD\}}?)/([\w./-]+)|(?<![\w./$}}{{-])((?:{PACKAGE})/[\w./-]+)")


def list_mentions(file: str) -> Iterator[str]:
    for mention in MENTION.finditer((ROOT / file).read_text("utf-8")):
        yield (mention[1] or mention[2]).rstrip("./")


@pytest.mark.parametrize("file", [file for file in FILES if SCRIPT.search(file)])
def test_paths_in_scripts_exist(file: str) -> None:
    missing = [path for path in list_mentions(file) if path not in PATHS and not BUILT.match(path)]
    assert not missing


IMPORTS = [
    (file, module, name)
    for file in FILES
    if SCRIPT.search(file)
    for module, name in re.findall(r"\bfrom ([\w.]+) import (\w+)", (ROOT / file).read_text("utf-8"))
]


@pytest.mark.parametrize(("file", "module", "name"), IMPORTS)
def test_what_a_script_imports_exists(file: str, module: str, name: str) -> None:
    assert hasattr(import_module(module), name), file


def test_scripts_import_modules() -> None:
    assert ".ci/image" in {file for file, _, _ in IMPORTS}


def test_scripts_name_paths() -> None:
    assert "dev/embedded/jars.lock" in set(list_mentions("deploy/images/build-local.sh"))


GUARD = 'if __name__ == "__main__":'
MODULES = [file for file in FILES if file.endswith(".py") and f"\n{GUARD}\n" in (ROOT / file).read_text("utf-8")]


@pytest.mark.parametrize("file", MODULES)
def test_a_module_that_is_run_has_all_its_functions_before_it_begins(file: str) -> None:
    """Imported by a test it has all of them anyway."""
    _, behind = (ROOT / file).read_text("utf-8").split(f"\n{GUARD}\n")
    assert all(line.startswith(" ") for line in behind.splitlines() if line), file
