"""The report as a file: what the cluster names things begins no cell, tag or formula of its own."""

import csv
import html
import io
import re
from typing import Any, Literal

import pytest
from markdown_it import MarkdownIt

from page.formats import format_duration
from page.plots import Series, draw_bars_over_time, draw_bars_side_by_side
from page.report_file import write_file
from schemas.answers.diagnosis import InBothLanguages
from schemas.answers.reports import (
    AttemptsReported,
    FailureReport,
    FindingsReported,
    NamespaceUsage,
    Percentiles,
    ReasonReported,
    Waited,
)
from schemas.answers.suggestions import AdmittingChangeFound
from schemas.answers.trends import Trends

HOSTILE = "a|b <script>alert(1)</script>\u202e\x1b[31m"
MOMENT = "2026-11-23T09:30:00Z"
NOTHING = Waited(pods=0, gpu_hours=0, causes=[])
NO_TIMES = Percentiles(pods=0, p50_seconds=None, p90_seconds=None, p99_seconds=None)


def a_report(**fields: object) -> FailureReport:
    times: Any = {"since": MOMENT, "until": MOMENT, "interval_seconds": 60, "times": [MOMENT]}
    over_time = Trends(by="reason", count="attempts", items=[], other=None, **times)
    plain: dict[str, object] = {
        "cluster": "default", "namespace": None, "since": "2026-01-01T00:00:00Z", "until": "2026-01-08T00:00:00Z",
        "language": "en", "attempts": 0, "failed": 0, "failed_before": None, "bind_failed": 0,
        "bind_failed_before": None, "reasons": [], "over_time": over_time,
        "namespaces": [], "pools": [], "waiting": NOTHING, "placed": NOTHING, "usage": [],
        "time_to_placement": NO_TIMES,
        "time_to_start": NO_TIMES, "fragmentation": None, "findings": [],
    }  # fmt: skip
    return FailureReport.model_validate(plain | fields)


def a_usage(namespace: str) -> NamespaceUsage:
    return NamespaceUsage(
        namespace=namespace,
        devices=12,
        held_gpu_hours=96.25,
        waiting_pods=3,
        waiting_gpu_hours=4.5,
        placed_gpu_hours=0.5,
    )


def a_reason(code: str, remedy: str) -> ReasonReported:
    return ReasonReported(
        code=code,
        attempts=3,
        attempts_before=None,
        devices=4,
        meaning=f"Means {code}.",
        remedy=remedy,
        who_acts=["you"],
    )


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_what_to_do_about_a_reason_is_there_once(form: Literal["markdown", "html"]) -> None:
    decisive, other = a_reason("NumaNotFit", "Bind it elsewhere."), a_reason("CardNotHealth", "Reset the device.")
    text = write_file(a_report(obstacles=[decisive], reasons=[decisive, other]), form)
    assert [text.count(remedy) for remedy in (decisive.remedy, other.remedy, "see above")] == [1, 1, 1]
    assert text.count("NumaNotFit") >= 2


def test_the_devices_of_a_namespace_are_in_every_format() -> None:
    report = a_report(usage=[a_usage("llm")])
    rows = list(csv.reader(io.StringIO(write_file(report, "csv"))))
    assert [row[2:] for row in rows if row[:2] == ["usage", "llm"]] == [
        ["devices", "12"],
        ["held_gpu_hours", "96.25"],
        ["waiting_pods", "3"],
        ["waiting_gpu_hours", "4.5"],
        ["placed_gpu_hours", "0.5"],
    ]
    (row,) = [line for line in write_file(report, "markdown").splitlines() if line.startswith("| llm")]
    assert row.split(" | ")[1:3] == ["12", "96.2"]
    assert "Devices held and waited for, by namespace" in write_file(report, "html")
    assert "各命名空间占用与等待的设备" in write_file(a_report(usage=[a_usage("llm")], language="zh"), "html")


def test_binds_that_failed_are_in_every_format() -> None:
    report = a_report(attempts=9, failed=5, failed_before=0, bind_failed=2, bind_failed_before=1)
    sentence = "Of them, 2 had a node and failed to be bound to it; in the range before: 1."
    assert all(sentence in write_file(report, form) for form in ("html", "markdown"))
    assert '"attempts","","bind_failed",2' in write_file(report, "csv")
    assert "bound to it" not in write_file(a_report(attempts=9, failed=5), "markdown")


def test_hostile_names_are_inert_in_every_format() -> None:
    report = a_report(
        pools=[AttemptsReported(key=HOSTILE, failed=1, failed_before=None)],
        findings=[FindingsReported(finding="=cmd()", count=1)],
        usage=[a_usage(HOSTILE)],
    )
    page, text, table = (write_file(report, form) for form in ("html", "markdown", "csv"))
    assert "<script" not in page + text
    assert not any(mark in page + text for mark in ("\u202e", "\x1b"))
    # One row of six cells, and one of three.
    usage, pool = (line for line in text.splitlines() if "alert(1)" in line)
    assert [row.replace("\\|", "").count("|") for row in (usage, pool)] == [7, 4]
    assert '"\'=cmd()"' in table


@pytest.mark.parametrize("key", ["=a", " =a", "\t=a", "\r=a", "＝a", "+a", "-a", "@a"])
def test_a_name_that_a_spreadsheet_would_read_as_a_formula_is_a_text(key: str) -> None:
    table = write_file(a_report(pools=[AttemptsReported(key=key, failed=1, failed_before=None)]), "csv")
    keys = [row[1] for row in csv.reader(io.StringIO(table, newline="")) if row[0] == "pools"]
    assert keys == [f"'{key}"] * 2


def test_the_one_change_is_shown_and_its_words_are_inert() -> None:
    sentence = InBothLanguages(en=f"Uncordon {HOSTILE}", zh=f"解除 {HOSTILE}")
    change = AdmittingChangeFound(
        sentence=sentence, who_acts="administrator", constraint="cordon", where=HOSTILE, pods=2, devices=2, workloads=[]
    )
    page, text, table = (write_file(a_report(best_change=change), form) for form in ("html", "markdown", "csv"))
    assert "The one change that helps most: Uncordon " in text
    assert "The one change that helps most" in page
    assert "最有帮助的一项改动：解除 " in write_file(a_report(best_change=change, language="zh"), "markdown")
    assert "<script" not in page + text
    assert not any(mark in page + text for mark in ("\u202e", "\x1b"))
    assert ["best_change", "pods", "2"] in [[row[0], *row[2:]] for row in csv.reader(io.StringIO(table, newline=""))]


def test_pods_whose_wait_is_not_known_are_counted_apart() -> None:
    placed = Waited(pods=19, gpu_hours=8.25, causes=[])
    measured = Percentiles(pods=3, p50_seconds=1, p90_seconds=2, p99_seconds=2)
    partly = a_report(placed=placed, time_to_placement=measured)
    for form in ("html", "markdown"):
        assert "19 pods. How long they waited is known of 3: 8.2 GPU-hours." in write_file(partly, form)
        every = a_report(placed=placed, time_to_placement=measured.model_copy(update={"pods": 19}))
        assert "19 pods, 8.2 GPU-hours of waiting." in write_file(every, form)
    chinese = write_file(a_report(placed=placed, time_to_placement=measured, language="zh"), "html")
    assert "19 个 Pod。其中 3 个的等待时长已知：共 8.2 GPU 小时。" in chinese


def test_who_acts_is_joined_as_the_language_does() -> None:
    reason = ReasonReported(
        code="CardCordoned",
        attempts=1,
        attempts_before=None,
        devices=1,
        meaning="",
        remedy="",
        who_acts=["wait", "you"],
    )
    assert "| wait, you |" in write_file(a_report(reasons=[reason]), "markdown")
    assert "| 等待、您 |" in write_file(a_report(reasons=[reason], language="zh"), "markdown")


def test_what_stands_between_backticks_is_shown_as_it_is_written() -> None:
    report = a_report(pools=[AttemptsReported(key="`kubectl get node <node>` <b>", failed=1, failed_before=2)])
    assert "| `kubectl get node <node>` &lt;b> | 1 | 2 |" in write_file(report, "markdown")


@pytest.mark.parametrize(
    "key",
    [
        "`<img src=x>", "`<img src=x>``", "``<img src=x>`", "\\`<img src=x>`", "a\\|b<img src=x>",
        "![x](https://a/<img src=x>)", "[x](javascript:alert(1)) <img src=x>", "`a` `<img src=x>",
    ],
)  # fmt: skip
def test_n4_a_name_is_no_tag_link_or_picture_in_markdown(key: str) -> None:
    """Read by another reader of Markdown (CommonMark with tables), which shows tags as they are written."""
    read = MarkdownIt("commonmark").enable("table")
    page = read.render(write_file(a_report(pools=[AttemptsReported(key=key, failed=1, failed_before=2)]), "markdown"))
    assert not re.search(r"<(img|a)\b", page)
    cells = [html.unescape(re.sub("</?code>", "`", cell)) for cell in re.findall("<td>(.*?)</td>", page)]
    assert key in cells


def test_bars_are_as_high_as_their_numbers() -> None:
    times = ["2026-11-23T09:30:00Z", "2026-11-23T09:31:00Z"]
    plot = draw_bars_over_time("Failures", times, [Series("x", [1, 2]), Series("y", [0, 2])], 60)
    # The second bar is the highest and has two halves; the first has a quarter of it.
    assert re.findall(r'<rect [^>]*height="([^"]+)"', plot) == ["55.0", "110.0", "110.0"]
    assert "<title>2026-11-23T09:31:00Z y: 2</title>" in plot
    # The axis reaches to the end of the last bar.
    assert 'data-since="2026-11-23T09:30:00+00:00" data-until="2026-11-23T09:32:00+00:00"' in plot
    assert draw_bars_over_time("Nothing", [], [], 60).count("<rect") == 0


@pytest.mark.parametrize(("values", "half"), [([3, 4], "2"), ([3, 5], "")])
def test_no_attempt_is_half_of_one_on_a_scale(values: list[int], half: str) -> None:
    times = ["2026-11-23T09:30:00Z", "2026-11-23T09:31:00Z"]
    plot = draw_bars_over_time("Failures", times, [Series("x", values)], 60)
    assert f"<span>{values[1]}</span><span>{half}</span><span>0</span>" in plot


def test_a_scale_of_seconds_is_in_words() -> None:
    plot = draw_bars_over_time(
        "Waits", ["2026-11-23T09:30:00Z"], [Series("nodes", [5400])], 60, format_duration, has_halves=True
    )
    assert "<span>1 h 30 min</span><span>45 min</span><span>0</span>" in plot


def test_bars_side_by_side_have_their_names() -> None:
    assert "&lt;script&gt;" in draw_bars_side_by_side("Causes", [("<script>", 2.0)], "h")
