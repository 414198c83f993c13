"""A sample of what HAMi v2.10.0 itself answered (see cases/README.md)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.replay import judge_codec, judge_filter, main, read_cases

CASES = Path(__file__).parent / "cases"


@pytest.mark.parametrize("case", list(read_cases(CASES / "filter_cases.jsonl")), ids=lambda case: str(case["id"]))
def test_a_filter_call_is_answered_as_hami_does(case: Mapping[str, Any]) -> None:
    found, defect = judge_filter(case)
    assert not found or defect, "\n".join(found)


@pytest.mark.parametrize(
    "case", list(read_cases(CASES / "codec_cases.jsonl")), ids=lambda case: f"{case['fn']}-{case['id']}"
)
def test_an_annotation_is_read_as_hami_does(case: Mapping[str, Any]) -> None:
    found, defect = judge_codec(case)
    assert not found or defect, "\n".join(found)


def test_the_replay_says_how_many_agree(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(str(CASES)) == 0
    assert "filter: agree 117 of 120; 3 differ by known defects of HAMi" in capsys.readouterr().out


def test_the_replay_of_a_folder_without_cases_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(str(tmp_path)) == 2
    assert "filter_cases.jsonl" in capsys.readouterr().out
