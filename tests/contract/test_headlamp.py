"""The Headlamp plugin fits the API of this version; `make headlamp` builds and tests it, which needs Node.js."""

import json
import re
from pathlib import Path
from typing import Any

from runtime.cli.installation import VERSION
from tests.support.harness import headlamp_answers

PLUGIN = Path("headlamp")
SOURCES = [path for path in sorted((PLUGIN / "src").glob("*.ts*")) if ".test." not in path.name]
TEXT = re.compile(r"""\bt\(\s*(?:'([^']+)'|"([^"]+)")""")


def read(name: str) -> Any:
    return json.loads((PLUGIN / name).read_text("utf-8"))


def test_the_answers_of_its_tests_are_those_of_the_api() -> None:
    """`python -m tests.support.harness.headlamp_answers` writes them."""
    assert headlamp_answers.FILE.read_bytes() == headlamp_answers.write_document()


def test_its_dependencies_are_exact_and_locked_without_the_address_of_a_registry() -> None:
    manifest, lock = read("package.json"), read("package-lock.json")
    assert manifest["version"] == VERSION
    assert lock["packages"][""]["devDependencies"] == manifest["devDependencies"]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+(-[\w.]+)?", version) for version in manifest["devDependencies"].values())
    packages = [package for path, package in lock["packages"].items() if path]
    assert all(package.get("integrity") or package.get("inBundle") for package in packages)
    assert {package.get("resolved", "https://registry.npmjs.org/").split("/")[2] for package in packages} == {
        "registry.npmjs.org"
    }


def test_each_of_its_texts_is_there_in_chinese() -> None:
    texts = {first or second for path in SOURCES for first, second in TEXT.findall(path.read_text("utf-8"))}
    assert read("package.json")["headlamp"]["i18n"] == ["zh"]
    assert texts == set(read("locales/zh/translation.json"))
