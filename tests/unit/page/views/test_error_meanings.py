"""What the codes of errors mean: every code of the API in both languages, as the documentation has them."""

import re
from pathlib import Path
from typing import Final

from api.http.errors import CODES, INDEX_REFUSED, UNKNOWN_PATH, UNREADABLE_DOCUMENT, ApiError, derive_code
from page.views.error_meanings import OTHER, error_meanings, meaning_of

OF_ERRORS: Final = {subclass.code for subclass in ApiError.__subclasses__() if subclass.code}
ALL: Final = {
    *CODES.values(),
    *OF_ERRORS,
    UNKNOWN_PATH,
    UNREADABLE_DOCUMENT,
    INDEX_REFUSED,
    derive_code(500),
    derive_code(418),
}
CHINESE: Final = re.compile("[\u4e00-\u9fff]")


def test_every_code_has_a_meaning_and_no_other_has() -> None:
    assert set(error_meanings()) == ALL


def test_every_meaning_is_in_both_languages() -> None:
    for code, words in error_meanings().items():
        assert set(words) == {"en", "zh"}, code
        assert CHINESE.search(words["zh"]), code
        assert not CHINESE.search(words["en"]), code


def test_a_code_of_a_newer_api_has_the_meaning_of_all_others() -> None:
    assert meaning_of("OfTomorrow", "zh") == error_meanings()[OTHER]["zh"]


def test_the_documentation_has_the_same_codes_and_meanings() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", Path("docs/api.md").read_text("utf-8"), re.MULTILINE)
    documented = {code: meaning for code, meaning in rows if code in ALL}
    assert documented == {code: words["en"].removesuffix(".") for code, words in error_meanings().items()}
