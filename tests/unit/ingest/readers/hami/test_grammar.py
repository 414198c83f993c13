import pytest

from ingest.lines import klog
from ingest.readers.hami.grammar import Spelling, load_grammar, load_spellings
from ingest.readers.hami.reader import HamiLog
from tests.support.builders.hami_lines import build_lines

SAMPLES = [(spelling.kind, sample) for spelling in load_spellings() for sample in spelling.samples]


@pytest.mark.parametrize(("kind", "sample"), SAMPLES)
def test_a_sample_line_has_its_kind(kind: str, sample: str) -> None:
    line = sample.encode()
    spelling_of_line = load_grammar().find_spelling(line, klog.find_message(line))
    assert spelling_of_line is not None
    assert spelling_of_line.kind == kind


@pytest.mark.parametrize(("kind", "sample"), SAMPLES)
def test_a_sample_line_is_read(kind: str, sample: str) -> None:
    reader = HamiLog(note=print)
    list(reader.feed(build_lines([sample.encode()])))
    assert reader.counts.lines["unknown"] == 0
    assert reader.counts.lines["noise" if kind == "noise" else "event"] == 1


@pytest.mark.parametrize("spelling", [spelling for spelling in load_spellings() if spelling.cause])
def test_lines_of_causes_are_noise_where_only_events_are_wanted(spelling: Spelling) -> None:
    reader = HamiLog()
    assert not list(reader.feed(build_lines([sample.encode() for sample in spelling.samples])))
    assert reader.counts.lines == {"event": 0, "noise": len(spelling.samples), "unknown": 0}


def test_every_kind_but_noise_has_a_step() -> None:
    assert {spelling.kind for spelling in load_spellings()} - {"noise"} == set(HamiLog()._steps)


def test_every_spelling_has_a_sample_line() -> None:
    for spelling in load_spellings():
        if spelling.kind != "noise":
            proven = [begin for begin in spelling.begins if any(begin in sample for sample in spelling.samples)]
            assert proven, spelling.begins
