import pytest

from ingest.hami.grammar import grammar, spellings
from ingest.hami.reader import HamiLog
from ingest.lines import klog
from tests.support.builders.hami_lines import lines

SAMPLES = [(spelling.says, sample) for spelling in spellings() for sample in spelling.samples]


@pytest.mark.parametrize(("says", "sample"), SAMPLES)
def test_a_sample_line_is_known_for_what_it_says(says: str, sample: str) -> None:
    line = sample.encode()
    found = grammar().spelling(line, klog.message_start(line))
    assert found is not None
    assert found.says == says


@pytest.mark.parametrize(("says", "sample"), SAMPLES)
def test_a_sample_line_is_read(says: str, sample: str) -> None:
    reader = HamiLog()
    list(reader.feed(lines([sample.encode()])))
    assert reader.counts.lines["unknown"] == 0
    assert reader.counts.lines["noise" if says == "noise" else "event"] == 1


def test_every_line_that_says_something_has_a_step() -> None:
    assert {spelling.says for spelling in spellings()} - {"noise"} == set(HamiLog()._steps)


def test_every_spelling_has_a_sample_line() -> None:
    for spelling in spellings():
        if spelling.says != "noise":
            proven = [begin for begin in spelling.begins if any(begin in sample for sample in spelling.samples)]
            assert proven, spelling.begins
