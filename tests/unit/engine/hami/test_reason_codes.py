"""Reason codes: explained in the same order, spelled as HAMi spells them, and written out in one module only."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.hami.reason_codes import DEVICE_REASON_CODES, ReasonCode
from schemas.reasons import read_catalogue

ROOT = Path(__file__).parents[4]
PACKAGES = sorted({path.parent.name for path in ROOT.glob("*/__init__.py")} - {"schemas"})
LEFT_OUT = (ROOT / "cli" / "client", ROOT / "dev" / "bench", ROOT / "dev" / "demo")
"""schemas and the client do not know engine.hami (the documentation of schemas shows codes in examples). Benchmarks and
the demo describe expected values, as tests do."""
HOME = ROOT / "engine" / "hami" / "reason_codes.py"
SPELLED_IN_CAPITALS = re.compile(r"\b(" + "|".join(code for code in ReasonCode if code[0].isupper()) + r")\b")
WORDS = [code for code in ReasonCode if not code[0].isupper()]


def test_every_code_has_an_explanation_in_the_same_order() -> None:
    assert [code.value for code in ReasonCode] == [
        code for code, reason in read_catalogue().items() if reason.scope != "claim"
    ]


def test_the_codes_of_devices_are_those_whose_explanation_is_about_devices() -> None:
    about_devices = [code for code, reason in read_catalogue().items() if reason.scope == "device"]
    assert [code.value for code in DEVICE_REASON_CODES] == about_devices


def test_every_code_of_recorded_answers_is_known() -> None:
    """HAMi's own answers are the check of our spelling."""
    recorded = (ROOT / "tests" / "conformance" / "cases" / "filter_cases.jsonl").read_text()
    counted = set(re.findall(r"\d+/\d+ ([A-Z]\w+)", recorded))
    assert len(counted) > 8
    assert counted <= {code.value for code in DEVICE_REASON_CODES}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_other_module_writes_a_code_out(package: str) -> None:
    written = [
        f"{path.relative_to(ROOT)}:{line}: {text!r}"
        for path in sorted((ROOT / package).rglob("*.py"))
        if path != HOME and not any(path.is_relative_to(folder) for folder in LEFT_OUT)
        if _holds_a_code(path.read_text())
        for line, text in _iterate_texts(path)
        if _holds_a_code(text)
    ]
    assert written == [], "use engine.hami.reason_codes.ReasonCode"


def _holds_a_code(text: str) -> bool:
    return SPELLED_IN_CAPITALS.search(text) is not None or any(word in text for word in WORDS)


def _iterate_texts(path: Path) -> Iterator[tuple[int, str]]:
    """Iterate over the strings of a module with their lines, without docstrings."""
    tree = ast.parse(path.read_text())
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value
