"""Texts of the diagnosis: each exists in both languages and fills its placeholders, and every reason code of the
catalogue has one."""

import re
from string import Formatter

import pytest

from engine.diagnosis.texts import find_obstacle_of_error, find_obstacle_of_reason, load_texts, write_phrase
from schemas.reasons import read_catalogue

PLACEHOLDER = re.compile(r"\{(\w+)")


def find_placeholders(text: str) -> set[str]:
    return {name for name in PLACEHOLDER.findall(text) if not name.startswith(".")}


def test_every_reason_code_has_a_sentence_and_every_branch_a_cause_and_a_remedy() -> None:
    entries = load_texts().obstacles
    assert read_catalogue().keys() <= entries.keys()
    for name, entry in entries.items():
        for language in (entry.en, entry.zh):
            assert language.sentence
            # A reason code's are in the catalogue: in one place.
            assert (name in read_catalogue()) != bool(language.likely_cause and language.remedy), name
        assert entry.who, name


@pytest.mark.parametrize("name", load_texts().obstacles)
def test_both_languages_have_the_same_places(name: str) -> None:
    entry = load_texts().obstacles[name]
    # A plural has no place in Chinese.
    assert find_placeholders(entry.zh.sentence) <= find_placeholders(entry.en.sentence)
    assert find_placeholders(entry.en.sentence) - find_placeholders(entry.zh.sentence) <= {"refused", "of", "count"}
    for clause in entry.clauses.values():
        assert find_placeholders(clause.en) == find_placeholders(clause.zh)
    for text in (entry.en.remedy, entry.zh.remedy, entry.en.sentence, entry.zh.sentence):
        list(Formatter().parse(text))


@pytest.mark.parametrize("name", load_texts().obstacles)
def test_a_chinese_reader_finds_no_name_of_an_english_field(name: str) -> None:
    chinese = load_texts().obstacles[name].zh
    assert "evidence" not in f"{chinese.sentence} {chinese.likely_cause} {chinese.remedy}"


def test_numbers_have_commas_and_plurals() -> None:
    assert write_phrase("mib", n=24_000).en == "24,000 MiB"
    assert [write_phrase("days", n=n).en for n in (1, 3)] == ["1 day", "3 days"]


def test_words_are_found_by_how_they_begin() -> None:
    assert find_obstacle_of_reason("node(s) had untolerated taint {dedicated: gpu}") == (
        "TaintNotTolerated",
        "{dedicated: gpu}",
    )
    assert find_obstacle_of_reason("CardNotHealth") == ("CardNotHealth", "")
    assert find_obstacle_of_reason("no GPU of type H100") == ("RefusedInOtherWords", "no GPU of type H100")
    assert find_obstacle_of_error("calcScore failed invalid annotation") == "calcScore failed"
    assert all(name in load_texts().obstacles for name in (*load_texts().words.values(), *load_texts().errors.values()))
