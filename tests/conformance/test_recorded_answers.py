"""A share of what HAMi v2.10.0 and kube-scheduler 1.36.3 themselves answered, replayed (see cases/README.md).

The unit tests of `engine.filters` and `engine.claims` replay a share of kube-scheduler's, as the whole does here.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.__main__ import COMMITTED, KUBE, SECOND, THIRD, holds, replay
from tests.conformance.difference import Case
from tests.conformance.kinds import KINDS as ALL_KINDS
from tests.conformance.kinds import judge
from tests.conformance.rules import ALL, KNOWN_NAMES
from tests.conformance.shares import choose_every, list_wrong
from tests.conformance.vendors_page import read_table, write_table
from tests.support.stress import run_in_make_stress

KINDS = {name: kind for name, kind in ALL_KINDS.items() if holds(COMMITTED, kind)}
DOCUMENT = Path(__file__).parents[2] / "docs" / "hami-differences.md"


def iterate_committed() -> Iterator[object]:
    for name, kind in KINDS.items():
        for case in kind.read(COMMITTED / kind.source):
            yield pytest.param(name, case, id=f"{name}-{case['id']}")


@pytest.mark.parametrize(("kind", "case"), list(iterate_committed()))
def test_an_answer_is_hamis_or_differs_by_a_rule(kind: str, case: Case) -> None:
    verdict = judge(KINDS[kind], case)
    assert verdict.agrees or verdict.is_explained, "\n".join(map(str, verdict.differences))


@pytest.mark.parametrize("collection", [SECOND, THIRD], ids=lambda folder: folder.name)
def test_a_share_of_a_collection_is_answered_as_hami_answers(collection: Path) -> None:
    """Every sixteenth case, and the first of each feature."""
    assert list_wrong(collection, choose_every(16)) == []


@run_in_make_stress
@pytest.mark.parametrize("collection", [SECOND, THIRD], ids=lambda folder: folder.name)
def test_a_whole_collection_is_answered_as_hami_answers(collection: Path) -> None:
    assert list_wrong(collection, iter) == []


@run_in_make_stress
def test_the_page_of_vendors_has_the_figures_of_the_whole_run() -> None:
    assert read_table() == write_table()


@run_in_make_stress
def test_all_attempts_are_judged_as_kube_scheduler_judges() -> None:
    assert list_wrong(KUBE, iter) == []


@run_in_make_stress
def test_every_rule_occurs_in_the_committed_cases() -> None:
    names = {
        name
        for folder in (COMMITTED, SECOND, THIRD)
        for kind in ALL_KINDS.values()
        if holds(folder, kind)
        for case in kind.read(folder / kind.source)
        for name in judge(kind, case).rules
    }
    assert names == {name.name for name in ALL}


def test_every_rule_has_its_reason_in_the_document_and_every_reason_its_rule() -> None:
    replayed = DOCUMENT.read_text().split("## Seen in the recorded answers")[1].split("\n## ")[0]
    # Sums are wide in filters and in reviews. The last rule changes the case and replays it.
    assert re.findall(r"^### (.+)$", replayed, re.M) == [*dict.fromkeys(rule.name for rule in ALL), KNOWN_NAMES]


def test_the_command_says_how_many_agree(capsys: pytest.CaptureFixture[str]) -> None:
    assert replay(COMMITTED) == 0
    printed = capsys.readouterr().out
    assert all(
        re.search(rf"^{name}: agree \d+ of \d+; \d+ differ by rule, 0 otherwise$", printed, re.M) for name in KINDS
    )


def test_a_folder_without_cases_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay(tmp_path) == 2
    assert "filter_cases.jsonl" in capsys.readouterr().out


def test_an_answer_that_nothing_explains_fails_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = (COMMITTED / "webhook_cases.jsonl").read_text().replace("pod has no containers", "pod has none")
    (tmp_path / "webhook_cases.jsonl").write_text(wrong)
    assert replay(tmp_path) == 1
    assert "pod has none" in capsys.readouterr().out


def test_a_case_that_makes_us_crash_differs_and_the_next_is_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (COMMITTED / "codec_cases.jsonl").read_text().splitlines()[:2]
    (tmp_path / "codec_cases.jsonl").write_text("\n".join([lines[0].replace('"in"', '"was"'), lines[1]]) + "\n")
    assert replay(tmp_path) == 1
    assert "codec: agree 1 of 2" in capsys.readouterr().out
