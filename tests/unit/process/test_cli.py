"""Options that several commands share, and mistakes as one line."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from process.addresses import HostPort
from process.cli import Kafka, MetricsAddress, application, one_line_for, takes
from process.errors import SettingError


@dataclass(frozen=True, kw_only=True)
class Shared:
    kafka: Kafka
    metrics_address: MetricsAddress = None
    names: Annotated[list[str] | None, typer.Argument(help="Some.")] = None


def an_application() -> typer.Typer:
    app = application("An example.")

    @app.callback()
    def main() -> None:
        """A command of its own name."""

    @app.command()
    @takes(Shared)
    def work(shared: Shared, count: Annotated[int, typer.Option(min=1)] = 1) -> None:
        """Work a little."""
        with one_line_for(SettingError):
            if count == 13:
                raise SettingError("--count: not 13")
        typer.echo(f"{shared} {count}")

    return app


def run(*words: str, **environment: str) -> tuple[int, str]:
    result = CliRunner().invoke(an_application(), ["work", *words], env={"COLUMNS": "200"} | environment)
    return result.exit_code, result.output


def test_the_fields_of_shared_options_are_options_beside_those_of_the_command() -> None:
    status, output = run("one", "two", "--kafka", "a:1", "--metrics-address", "[::]:80", "--count", "2")
    assert status == 0
    assert output.strip() == str(Shared(kafka="a:1", metrics_address=HostPort("::", 80), names=["one", "two"])) + " 2"


def test_the_help_shows_all_of_them() -> None:
    output = run("--help")[1]
    assert all(word in output for word in ("Work a little.", "--kafka", "--metrics-address", "--count", "names"))
    assert "SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS" in output


def test_kafka_comes_from_the_environment_too() -> None:
    assert "kafka='b:2'" in run(SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS="b:2")[1]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--kafka", "a"), "--kafka: 'a' is not HOST:PORT: write for example 127.0.0.1:9092"),
        (
            ("--kafka", "a:1", "--metrics-address", ":80"),
            "--metrics-address: ':80' is not HOST:PORT: write for example 127.0.0.1:8080",
        ),
        (("--kafka", "a:1", "--count", "13"), "--count: not 13"),
    ],
)
def test_a_mistake_is_named_and_ends_with_2(words: tuple[str, ...], line: str) -> None:
    status, output = run(*words)
    assert (status, output) == (2, f"{line}\n")


def test_a_mistake_in_the_environment_is_named_by_its_variable() -> None:
    status, output = run("--kafka", "a:1", SCHEDULERLOG_METRICS_ADDRESS="tcp://10.0.0.1:80")
    assert status == 2
    assert output.startswith("SCHEDULERLOG_METRICS_ADDRESS: 'tcp://10.0.0.1:80' is not HOST:PORT")
