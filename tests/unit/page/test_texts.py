import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest

from page.render import FOLDER
from page.texts import LANGUAGES, choose_language, get_text, load_texts
from schemas.answers.diagnosis import TimelineEvent

SOURCE = tomllib.loads((FOLDER / "texts.toml").read_text("utf-8"))
ENTRIES = {f"{part}.{name}": entry for part, table in SOURCE.items() for name, entry in table.items()}
TEMPLATES = {path.name: path.read_text("utf-8") for path in (FOLDER / "templates").rglob("*.html")}
VALUES = re.compile(r"\{(\w*)")


@pytest.mark.parametrize("key", ENTRIES)
def test_every_text_is_there_in_both_languages_with_the_same_values(key: str) -> None:
    entry = ENTRIES[key]
    assert set(entry) == set(LANGUAGES)
    assert all(entry.values())
    assert Counter(VALUES.findall(entry["en"])) == Counter(VALUES.findall(entry["zh"]))


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_name_texts_that_there_are(name: str) -> None:
    # `t("nav." ~ name)` has only the beginning of its key.
    for key, is_whole in re.findall(r"\bt\(\s*[\"']([\w.]+)[\"']\s*([,)])?", TEMPLATES[name]):
        assert (
            key in load_texts("en") if is_whole else any(text_key.startswith(key) for text_key in load_texts("en"))
        ), key


def test_templates_have_no_text_of_their_own_in_chinese() -> None:
    for name, source in TEMPLATES.items():
        chinese = set(re.findall(r"[\u4e00-\u9fff]+", source))
        assert chinese <= {"中文"}, name  # how the language names itself


@pytest.mark.parametrize("path", sorted((FOLDER / "static").iterdir()), ids=lambda path: str(path.name))
def test_files_of_the_page_name_no_other_host(path: Path) -> None:
    addresses = re.findall(r"(?:https?:)?//[\w.-]+\.\w+", path.read_text("utf-8"))
    assert set(addresses) <= {"http://www.w3.org"}  # the name of SVG, which nobody fetches


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_have_no_script_style_or_handler_inside(name: str) -> None:
    source = TEMPLATES[name]
    if name in ("report_file.html", "file_style.html"):  # files to be kept, which have to bring their style along
        source = source.replace("<style>", "", 1)
    assert not re.findall(r"<style|\sstyle=|\son\w+=|javascript:|\|\s*safe", source)
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", source))
    assert not re.findall(r"[\"']https?://", source)


@pytest.mark.parametrize(
    ("requested", "accepted", "language"),
    [
        (None, "", "en"),
        (None, "de", "en"),
        (None, "zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        (None, "en-GB,en;q=0.9,zh;q=0.8", "en"),
        (None, "fr,zh;q=0.4,en;q=0.7", "en"),
        (None, "zh;q=nonsense", "zh"),
        ("zh", "en", "zh"),
        ("en", "zh", "en"),
        ("xx", "zh", "en"),
    ],
)
def test_the_address_chooses_the_language_and_else_the_browser(
    requested: str | None, accepted: str, language: str
) -> None:
    assert choose_language(requested, accepted) == language


def test_a_text_without_an_entry_is_an_error() -> None:
    with pytest.raises(KeyError):
        get_text("en", "nothing.here")


def test_every_text_is_used() -> None:
    sources = "".join(TEMPLATES.values())
    # Where only the beginning of a key is written, the rest comes from an answer.
    begun = tuple(re.findall(r"\bt\([\"']([\w.]+)[\"'] ~", sources))
    used = set(re.findall(r"[\"']([a-z]+\.[\w-]+)[\"']", sources))
    assert [key for key in ENTRIES if key not in used and not key.startswith(begun)] == []


def test_one_of_a_kind_is_written_in_the_singular() -> None:
    assert [get_text("en", "history.attempts", count=count) for count in (0, 1, 2)] == [
        "0 attempts",
        "1 attempt",
        "2 attempts",
    ]
    assert get_text("zh", "history.attempts", count=1) == "1 次"


def test_every_event_of_a_time_line_has_a_text() -> None:
    events = {key.partition(".")[2].replace("-", " ") for key in ENTRIES if key.startswith("event.")}
    assert events == set(get_args(TimelineEvent))
