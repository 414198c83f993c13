import pytest

from cli.terminal.diagnosed import show_diagnosis, show_obstacle
from cli.terminal.screen import Screen


def test_what_together_keeps_a_pod_from_every_node_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    diagnosis = {
        "headline": {"en": "No node has room."},
        "background": None,
        "obstacle": None,
        "other_obstacles": [],
        "not_known": [],
        "excluded_by": ["use", "memory"],
    }
    show_diagnosis(Screen(), diagnosis, None, is_wide=False)
    assert capsys.readouterr().out == (
        "No node has room.\n"
        "\n"
        "Only together these keep it from every node, and without any one of them it would fit somewhere: "
        "what other pods hold and the memory it asks for.\n"
    )
    show_diagnosis(Screen(), diagnosis | {"excluded_by": None}, None, is_wide=False)
    assert capsys.readouterr().out.splitlines() == ["No node has room."]


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("1 of 2 nodes has no room.", ["  0/2 nodes are available: 1 Insufficient cpu, 1 ports."]),
        ("It says: 0/2 nodes are available: 1 Insufficient cpu, 1 ports", []),
    ],
    ids=["the scheduler's words are evidence", "the sentence has them"],
)
def test_the_words_of_the_evidence_are_shown_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, sentence: str, words: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    evidence = {"kind": "attempt", "record": "7f", "words": "0/2 nodes are available:\n1 Insufficient cpu, 1 ports."}
    texts = {"sentence": {"en": sentence}, "likely_cause": {"en": "A cause."}, "remedy": {"en": "A remedy."}}
    obstacle = {**texts, "code": "C", "who_acts": ["you"], "evidence": [evidence, evidence]}
    obstacle["evidence"] = [
        evidence,
        evidence,
        {"kind": "node", "record": "n-1", "words": "a check"},
    ]
    show_obstacle(Screen(), obstacle)
    lines = capsys.readouterr().out.splitlines()
    assert lines[lines.index("Evidence: 7f, 7f, n-1") + 1 :] == words
