"""The API with the golden records, which the commands ask by its URL."""

from collections.abc import Callable, Iterator

import pytest
from typer.testing import CliRunner, Result

from cli.command import app
from tests.support.harness.golden_api import golden_api

Run = Callable[..., Result]


@pytest.fixture(scope="session")
def golden_url() -> Iterator[str]:
    with golden_api() as url:
        yield url


@pytest.fixture
def run(golden_url: str) -> Run:
    """Runs ``schedulerlog`` with these words."""

    def run(*words: str, **environment: str) -> Result:
        return CliRunner().invoke(app, words, env={"SCHEDULERLOG_API_URL": golden_url, "COLUMNS": "80"} | environment)

    return run
