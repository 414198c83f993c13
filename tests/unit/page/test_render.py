from datetime import UTC, datetime
from typing import Any

import pytest
from markupsafe import escape

from page.formats import (
    escape_hidden,
    format_age,
    format_amount,
    format_code,
    format_duration,
    format_hours,
    format_mib,
    format_moment,
    format_requests,
    format_score,
    format_span,
)
from page.page_context import PageContext
from page.render import build_environment, render, render_error
from page.views.translations import get_meaning

NOW = datetime(2026, 11, 23, 14, 0, tzinfo=UTC)


def a_context(*query: tuple[str, str], path: str = "/ui", **fields: object) -> PageContext:
    return PageContext(**{"language": "en", "path": path, "query": query, "now": NOW, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "text_on_page"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ('" onmouseover="x', "&#34; onmouseover=&#34;x"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("abc\u202egpj.exe", "abc\\u202egpj.exe"),
        ("\u2066hidden\u2069", "\\u2066hidden\\u2069"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("half \ud800 of a pair", "half \\ud800 of a pair"),
        ("节点 ünïcödé עברית", "节点 ünïcödé עברית"),
    ],
)
def test_hostile_text_is_inert(text: str, text_on_page: str) -> None:
    page = render_error(a_context(), 404, text, "next").decode()
    assert f"<p>{text_on_page}</p>" in page


def test_lines_and_tabs_are_kept() -> None:
    assert escape_hidden("a\n\tb") == "a\n\tb"


def test_a_link_keeps_language_and_cluster_and_nothing_else() -> None:
    context = a_context(("lang", "zh"), ("cluster", "b"), ("status", "failed"), path="/ui/search")
    assert context.build_url("/ui/pending", limit=5, until=None) == "/ui/pending?lang=zh&cluster=b&limit=5"
    assert context.change_url(status="") == "/ui/search?lang=zh&cluster=b"
    assert context.change_url(lang="en") == "/ui/search?cluster=b&status=failed&lang=en"
    assert context.link_pod("", "x") == "/ui/pods/-/x?lang=zh&cluster=b"
    assert context.api == "/api/v1/clusters/b"


def test_an_address_is_always_one_of_this_host() -> None:
    assert a_context().build_url("/ui/nodes/a b?c#d") == "/ui/nodes/a%20b%3Fc%23d"


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (400, "bad_request"), (401, "unknown_caller"), (403, "not_allowed"), (404, "not_found"), (410, "expired"),
        (418, "bad_request"), (429, "unavailable"), (500, "failed"), (503, "unavailable"),
    ],
)  # fmt: skip
def test_every_error_has_its_state(status: int, state: str) -> None:
    page = render_error(a_context(), status, "cause", "what to do").decode()
    assert f'<div class="state {state}" role="alert">' in page
    assert "cause" in page
    assert "what to do" in page


def test_a_reader_of_chinese_reads_what_the_code_means_before_the_error_in_its_own_words() -> None:
    context = a_context(path="/ui", language="zh")
    page = render_error(context, 403, "alice may not <get> pods", "Ask for it", "Forbidden").decode()
    assert f"<p>{get_meaning('Forbidden', 'zh')}</p>" in page
    assert '<span lang="en" dir="ltr">alice may not &lt;get&gt; pods. Ask for it</span>' in page


@pytest.mark.parametrize(
    ("language", "text_on_page"), [("en", "lost"), ("zh", 'API 的原文：<span lang="en" dir="ltr">lost</span>')]
)
def test_words_of_the_api_are_marked_as_english_for_readers_of_chinese(language: str, text_on_page: str) -> None:
    context = a_context(language=language)
    module: Any = build_environment().get_template("parts.html").make_module({"page": context, "t": context.get_text})
    assert str(module.original("lost")).strip() == text_on_page


@pytest.mark.parametrize(
    ("seconds", "text_on_page"),
    [(None, "–"), (0, "0 s"), (59.4, "59 s"), (60, "1 min"), (3725, "1 h 2 min"), (90_000, "1 d 1 h"), (-5, "0 s")],
)
def test_a_duration_has_its_two_greatest_units(seconds: float | None, text_on_page: str) -> None:
    assert format_duration(seconds) == text_on_page


def test_a_duration_in_chinese_has_no_english_units() -> None:
    assert [format_duration(value, "zh") for value in (0, 60, 3725, 90_000)] == [
        "0 秒",
        "1 分",
        "1 小时 2 分",
        "1 天 1 小时",
    ]
    assert format_age("2026-11-23T13:58:00Z", NOW, "zh") == "2 分"


def test_a_span_of_a_filter_is_in_words_and_a_time_is_none() -> None:
    assert [format_span(text) for text in ("1h", "90m", "7d", "2026-11-23T13:58:00Z", "1w", "")] == [
        "1 h", "1 h 30 min", "7 d", "", "", "",
    ]  # fmt: skip
    assert format_span("1h", "zh") == "1 小时"


def test_no_line_ends_between_a_number_and_its_unit() -> None:
    text = "Of 5 devices 30 % and 2,360 MiB; run `sleep 5 s`, for 12 min"
    assert format_code(text) == "Of 5 devices 30\u00a0% and 2,360\u00a0MiB; run <code>sleep 5 s</code>, for 12\u00a0min"
    assert format_code("共 5 个设备，还差1块") == "共\x205\u00a0个设备，还差1\u2060块"
    # A name is not a unit.
    assert format_code("node 3 h-one") == "node 3 h-one"


def test_a_time_in_a_sentence_is_an_element_that_a_page_shows_in_the_zone_of_its_reader() -> None:
    moment = '<time datetime="2026-11-27T23:33:57Z">2026-11-27 23:33:57 UTC</time>'
    assert format_code("When it was tried at 2026-11-27 23:33:57 UTC: <b>") == (
        f"When it was tried at {moment}: &lt;b&gt;"
    )
    assert format_code("`2026-11-27 23:33:57 UTC`") == "<code>2026-11-27 23:33:57 UTC</code>"


def test_numbers_are_for_people() -> None:
    assert format_amount(1234567) == "1,234,567"
    assert format_amount(2.50) == "2.5"
    assert format_amount(None) == "–"
    assert [format_score(number) for number in (12.5, 3.9, 0, 11.581)] == ["12.50", "3.90", "0.00", "11.58"]
    assert [format_hours(number) for number in (0.047, 0.96, 1.66, 340.2)] == ["0.05", "0.96", "1.7", "340.2"]
    assert (format_mib(512), format_mib(2048), format_mib(81559), format_mib(None)) == (
        "512 MiB",
        "2,048 MiB",
        "81,559 MiB",
        "–",
    )


def test_a_time_is_to_the_second_and_exact_for_programs() -> None:
    assert (
        format_moment("2026-11-23T13:59:01.5Z") == '<time datetime="2026-11-23T13:59:01.5Z">2026-11-23 13:59:01</time>'
    )
    assert format_moment("<b>") == '<time datetime="&lt;b&gt;">&lt;b&gt;</time>'
    assert format_moment(None) == "–"
    assert format_age("2026-11-23T13:58:00Z", NOW) == "2 min"
    assert format_age("soon", NOW) == "–"


def test_an_embedded_page_has_no_frame_of_its_own() -> None:
    view = {"kind": "not_found", "status": 404, "error": "", "next_step": "", "code": ""}
    assert b"<nav" not in render("error", a_context(is_embedded=True), view)


def test_what_containers_ask_for_is_read_from_the_answers_json_and_else_shown_as_it_is() -> None:
    shared = (
        '{"container":"main","vendor":"NVIDIA","count":2,"memory_mib":3072,"memory_percent":null,"cores_percent":30}'
    )
    none = '{"container":"side","vendor":"","count":0,"memory_mib":null,"memory_percent":null,"cores_percent":0}'
    assert format_requests(f"{shared} {none}") == "main: 2 x NVIDIA, 3,072 MiB, 30 %; side: –"
    assert format_requests("{not json") == "{not json"


@pytest.mark.parametrize(
    ("line", "chinese"),
    [
        ("node7: 3/8 CardInsufficientMemory became fit", "node7: 3/8 CardInsufficientMemory → 可放置"),
        ("bind: nothing became bound to node10", "绑定: 无 → 绑定到 node10"),
        ("node2: not offered became node unregistered", "node2: 未提供 → 未注册"),
        ("and 5 more", "and 5 more"),
        ("<b>: fit became <i>", "&lt;b&gt;: 可放置 → &lt;i&gt;"),
    ],
)
def test_what_changed_is_in_the_readers_language(line: str, chinese: str) -> None:
    assert render_change(line, "zh") == chinese
    assert render_change(line, "en") == str(escape(line.replace(" became ", " → ")))


def render_change(line: str, language: str) -> str:
    context = a_context(language=language)
    template = build_environment().get_template("parts.html")
    parts: Any = template.make_module({"page": context, "t": context.get_text, "l": context.choose_text})
    return " ".join(str(parts.changed(line)).split())


@pytest.mark.parametrize(
    ("name", "value", "english", "chinese"),
    [
        ("status", "failed", "State refused", "状态 被拒绝"),
        ("chosen", "", "Chosen node –", "选中的节点 –"),
        ("node_policy", "binpack", "Policy for nodes binpack", "节点策略 binpack"),
        ("of_a_newer_api", "status", "of_a_newer_api status", "of_a_newer_api status"),
    ],
)
def test_what_differs_between_attempts_is_in_the_readers_language(
    name: str, value: str, english: str, chinese: str
) -> None:
    assert (render_difference(name, value, "en"), render_difference(name, value, "zh")) == (english, chinese)


def render_difference(name: str, value: str, language: str) -> str:
    context = a_context(language=language)
    parts: Any = build_environment().get_template("parts.html").make_module({"page": context, "t": context.get_text})
    return f"{str(parts.compared_name(name)).strip()} {str(parts.compared_value(name, value)).strip()}"
