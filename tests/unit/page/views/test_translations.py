"""Texts in both languages: every constraint, every error code, and every phrase that a reader writes about its gaps."""

import ast
import re
from pathlib import Path
from typing import Final, get_args

from api.http.errors import (
    CODES,
    INDEX_REFUSED,
    OBJECTS_NOT_READ,
    UNKNOWN_PATH,
    UNREADABLE_DOCUMENT,
    ApiError,
    derive_code,
)
from ingest.readers.hami import gaps
from page.views.translations import (
    OTHER,
    get_meaning,
    load_constraints,
    load_error_meanings,
    load_source_gaps,
    translate_gap,
    write_exclusion,
)
from schemas.answers.suggestions import Constraint
from schemas.events.base import FILTER_END, OFFERED_NODES

OF_ERRORS: Final = {subclass.code for subclass in ApiError.__subclasses__() if subclass.code}
ALL: Final = {
    *CODES.values(),
    *OF_ERRORS,
    UNKNOWN_PATH,
    UNREADABLE_DOCUMENT,
    INDEX_REFUSED,
    OBJECTS_NOT_READ,
    derive_code(500),
    derive_code(418),
}
CHINESE: Final = re.compile("[\u4e00-\u9fff]")


def test_every_code_has_a_meaning_and_no_other_has() -> None:
    assert set(load_error_meanings()) == ALL


def test_every_meaning_is_in_both_languages() -> None:
    for code, words in load_error_meanings().items():
        assert set(words) == {"en", "zh"}, code
        assert CHINESE.search(words["zh"]), code
        assert not CHINESE.search(words["en"]), code


def test_a_code_of_a_newer_api_has_the_meaning_of_all_others() -> None:
    assert get_meaning("OfTomorrow", "zh") == load_error_meanings()[OTHER]["zh"]


def test_the_documentation_has_the_same_codes_and_meanings() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", Path("docs/api.md").read_text("utf-8"), re.MULTILINE)
    documented = {code: meaning for code, meaning in rows if code in ALL}
    assert documented == {code: words["en"].removesuffix(".") for code, words in load_error_meanings().items()}


def test_every_constraint_of_the_answer_has_a_name_in_both_languages() -> None:
    assert set(load_constraints()) == set(get_args(Constraint))
    for code, name in load_constraints().items():
        assert set(name) == {"en", "zh"}, code
        assert CHINESE.search(name["zh"]), code
        assert not CHINESE.search(name["en"]), code


def test_several_are_listed_and_one_stands_alone() -> None:
    listed = "what other pods hold, the memory it asks for and cordoned devices."
    assert write_exclusion(["use", "memory", "cordon"], "en").endswith(f"somewhere: {listed}")
    assert write_exclusion(["use", "memory"], "zh").endswith("：其他 Pod 的占用、所申请的显存。")
    alone = "A single constraint keeps it from every node: the number of devices it asks for."
    assert write_exclusion(["count"], "en") == alone
    assert write_exclusion(["count"], "zh") == "仅此一项就使它无处可放：所申请的设备数。"


def test_what_was_not_computed_is_no_sentence() -> None:
    assert write_exclusion(None, "en") == write_exclusion([], "zh") == ""


def test_a_constraint_of_a_newer_api_is_named_as_it_names_it() -> None:
    assert write_exclusion(["topology", "use"], "en").endswith("somewhere: topology and what other pods hold.")


def list_phrases(path: str) -> set[str]:
    """List the texts that the module's ``_list_gaps`` may write."""
    tree = ast.parse(Path(path).read_text("utf-8"))
    function = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "_list_gaps")
    tables = [node for node in ast.walk(function) if isinstance(node, ast.Dict)]
    keys = [key for table in tables for key in table.keys]
    constants = {
        node.target.id: node.value
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    texts = [constants.get(key.id) if isinstance(key, ast.Name) else key for key in keys]
    return {text.value for text in texts if isinstance(text, ast.Constant) and isinstance(text.value, str)}


def test_every_phrase_of_a_reader_has_its_chinese_and_no_other_has() -> None:
    hami = {text for name, text in vars(gaps).items() if name.isupper() and name != "UNKNOWN" and isinstance(text, str)}
    kai, kube = list_phrases("ingest/readers/kai/events.py"), list_phrases("ingest/readers/kube/events.py")
    assert (len(kai), len(kube)) == (4, 3)
    written = hami | kai | kube | {OFFERED_NODES, FILTER_END}
    # The verdicts that the module compares with are no gaps.
    assert set(load_source_gaps()) == written - {"fits", "refused"}
    assert all(CHINESE.search(text) for text in load_source_gaps().values())


def test_a_phrase_of_a_newer_reader_is_as_it_wrote_it() -> None:
    assert translate_gap("the weather", "zh") == "the weather"
    assert translate_gap("devices", "en") == "devices"
    assert translate_gap("devices", "zh") == "设备"
