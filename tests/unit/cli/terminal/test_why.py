from typer.testing import CliRunner

from cli.terminal.kubectl import app
from tests.support.harness.api_app import Caller
from tests.support.harness.golden_api import POD, golden_api
from tests.support.harness.golden_index import read_attempt


def test_a_placed_pod_is_answered_with_why_here_and_not_there() -> None:
    """By the scores of the golden record: node5 has 0.85, node3 0.65, of which memory and slots are 0.1 each."""
    refused = read_attempt()
    assert refused.bind
    placed = refused.model_copy(update={"bind": refused.bind.model_copy(update={"bound": True, "error": ""})})
    caller = Caller()
    caller.remember(placed)
    with golden_api(caller) as url:
        done = CliRunner().invoke(app, ["why", POD], env={"SCHEDULERLOG_API_URL": url, "COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    expected = (
        "Why node5: binpack takes it with a score of 0.85 > 0.65 of node3, the next best: memory +0.10, slots +0.10."
    )
    assert expected in done.stdout.splitlines(), done.stdout
    assert "It would fit" not in done.stdout
