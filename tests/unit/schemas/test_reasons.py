"""Every reason code is explained in both languages, and an unknown one is no error."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.events import NOT_REASONS
from schemas.reasons import explain, read_catalogue

CODES = list(read_catalogue())


@pytest.mark.parametrize("code", CODES)
def test_an_entry_speaks_both_languages(code: str) -> None:
    english, chinese = explain(code), explain(code, "zh")
    assert english.is_known
    assert english.scope == chinese.scope
    han = re.compile("[一-鿿]")
    for field in ("meaning", "likely_cause", "remedy"):
        assert not han.search(getattr(english, field))
        assert han.search(getattr(chinese, field))


@pytest.mark.parametrize("code", CODES)
def test_both_languages_name_the_same_annotations_resources_and_commands(code: str) -> None:
    for field in ("meaning", "likely_cause", "remedy"):
        english, chinese = (set(list_names(getattr(explain(code, language), field))) for language in ("en", "zh"))
        assert english == chinese, field


def list_names(text: str) -> list[str]:
    """List what stands in backquotes, without what is to be filled in."""
    return [re.sub(r"<[^>]*>", "<>", name) for name in re.findall(r"`([^`]+)`", text)]


def test_every_refusal_of_a_device_names_something_to_look_at() -> None:
    refusals = [code for code, reason in read_catalogue().items() if reason.scope in ("device", "claim")]
    assert all("`" in explain(code).remedy for code in refusals)


@pytest.mark.parametrize(
    ("tag", "language"), [("zh-CN", "zh"), ("ZH", "zh"), ("en-GB", "en"), ("fr", "en"), ("", "en")]
)
def test_a_language_tag_is_enough(tag: str, language: str) -> None:
    assert explain("CardNotHealth", tag).language == language


@given(st.text(st.characters()) | st.sampled_from(["cardnothealth", "3/8 CardNotHealth", "\ud800"]), st.text())
def test_an_unknown_code_gets_a_neutral_entry(code: str, language: str) -> None:
    entry = explain(code, language)
    assert entry.code == code
    assert entry.is_known == (code in read_catalogue())
    assert entry.meaning
    assert entry.likely_cause
    assert entry.remedy


def test_what_is_no_refusal_is_no_reason_code() -> None:
    assert not NOT_REASONS & set(read_catalogue())
