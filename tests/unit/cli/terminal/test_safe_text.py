import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st
from yaml import safe_load

from cli.terminal.answers import to_json, to_yaml
from cli.terminal.safe_text import find_hidden, on_one_line, to_printable

HOSTILE = {
    "\x1b[2Jgone": "\\x1b[2Jgone",
    "\x1b]0;title\x07": "\\x1b]0;title\\x07",
    "\x9b31m": "\\x9b31m",
    "a\rb": "a\\x0db",
    "\u202eexe.doc": "\\u202eexe.doc",
    "\u2066a\u2069": "\\u2066a\\u2069",
    "zero\u200bwidth": "zero\\u200bwidth",
    "line\u2028break": "line\\u2028break",
    "\U000e0041": "\\U000e0041",
    "\ud800": "\\ud800",
}


def test_what_a_terminal_obeys_is_written_out() -> None:
    assert {text: to_printable(text) for text in HOSTILE} == HOSTILE


def test_the_text_of_all_languages_is_kept() -> None:
    for text in ("节点 node7 显存不足", "größer", "naïve – “quoted”", "אבג", "👍"):
        assert to_printable(text) == text


@given(st.text(st.characters(codec=None)))
def test_no_text_has_a_command_for_a_terminal(text: str) -> None:
    escaped = to_printable(text)
    assert all(
        unicodedata.category(char)[0] != "C" or char == "\n" for char in escaped if unicodedata.category(char) != "Cn"
    )
    assert not find_hidden(escaped)
    assert "\n" not in on_one_line(text)


@given(st.dictionaries(st.text(), st.text(st.characters(codec="utf-8"))))
def test_documents_are_inert_and_hold_the_same_values(answer: dict[str, str]) -> None:
    assert json.loads(to_json(answer)) == answer
    assert not find_hidden(to_json(answer))
    assert not find_hidden(to_yaml(answer))


def test_yaml_holds_the_same_values() -> None:
    answer = {"name": "\u202ea\x1b[0m", "text": "节点\nzwei"}
    assert safe_load(to_yaml(answer)) == answer
