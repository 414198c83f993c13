"""What a source leaves open, in Chinese: every phrase that a reader writes."""

import ast
import re
from pathlib import Path
from typing import Final

from ingest.readers.hami import gaps
from page.views.source_gaps import source_gap, source_gaps
from schemas.events.base import FILTER_END, OFFERED_NODES

CHINESE: Final = re.compile("[\u4e00-\u9fff]")


def of_reader(path: str) -> set[str]:
    """The texts that the module's ``_not_reported`` may write."""
    tree = ast.parse(Path(path).read_text("utf-8"))
    function = next(
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "_not_reported"
    )
    tables = [node for node in ast.walk(function) if isinstance(node, ast.Dict)]
    keys = [key for table in tables for key in table.keys]
    return {key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}


def test_every_phrase_of_a_reader_has_its_chinese_and_no_other_has() -> None:
    hami = {text for name, text in vars(gaps).items() if name.isupper() and name != "UNKNOWN" and isinstance(text, str)}
    kai, kube = of_reader("ingest/readers/kai/events.py"), of_reader("ingest/readers/kube/events.py")
    assert (len(kai), len(kube)) == (4, 3)
    written = hami | kai | kube | {OFFERED_NODES, FILTER_END}
    # The verdicts that the module compares with are no gaps.
    assert set(source_gaps()) == written - {"fits", "refused"}
    assert all(CHINESE.search(text) for text in source_gaps().values())


def test_a_phrase_of_a_newer_reader_is_as_it_wrote_it() -> None:
    assert source_gap("the weather", "zh") == "the weather"
    assert source_gap("devices", "en") == "devices"
    assert source_gap("devices", "zh") == "设备"
