"""The docstring of a package is its map: it names every module and package that lies in it. No module is a drawer."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOP = [path.parent.name for path in ROOT.glob("*/__init__.py")]
PACKAGES = sorted(
    path.parent
    for top in TOP
    for path in (ROOT / top).rglob("__init__.py")
    if any(other.name != "__init__.py" for other in path.parent.glob("*.py"))
)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_package_names_all_that_lies_in_it(package: Path) -> None:
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text("utf-8"))) or ""
    words = set(re.findall(r"\w+", text))
    modules = {path.stem for path in package.glob("*.py")} - {"__init__", "__main__"}
    inner = {path.parent.name for path in package.glob("*/__init__.py")}
    assert not (modules | inner) - words


def test_no_module_has_more_than_350_lines() -> None:
    modules = [path for top in TOP if top != "tests" for path in (ROOT / top).rglob("*.py")]
    lines = {str(path.relative_to(ROOT)): path.read_bytes().count(b"\n") for path in modules}
    assert len(lines) > 500
    assert {name: count for name, count in lines.items() if count > 350} == {}


def test_the_lists_of_packages_are_those_of_the_folders() -> None:
    done = subprocess.run([sys.executable, ".ci/packages.py", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_every_package_has_its_layer() -> None:
    contract = (ROOT / ".importlinter").read_text("utf-8").partition("layers =\n")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"\w+", contract)) == sorted(set(TOP) - {"tests"})


def test_the_readme_names_every_package() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert [name for name in TOP if f"]({name}/)" not in text] == []
