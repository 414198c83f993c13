import pytest

from cli.terminal.diagnosed import show_diagnosis
from cli.terminal.screen import Screen


def test_what_together_keeps_a_pod_from_every_node_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    diagnosis = {
        "sentence": {"en": "No node has room."},
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
