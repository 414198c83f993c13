"""Options that several commands share, and mistakes as one line."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from runtime.cli.cli import create_application, one_line_for
from runtime.errors import SettingError
from runtime.settings.addresses import HostPort
from runtime.settings.flags import with_settings
from runtime.settings.kafka_connection import KafkaConnection
from runtime.settings.settings import ServiceSettings


class Settings(KafkaConnection, ServiceSettings):
    pass


@dataclass(frozen=True, kw_only=True)
class Shared:
    names: Annotated[list[str] | None, typer.Argument(help="Some.")] = None


def an_application() -> typer.Typer:
    app = create_application("An example.")

    @app.callback()
    def main() -> None:
        """Call a command by its own name."""

    @app.command()
    @with_settings(Settings, Shared)
    def work(settings: Settings, shared: Shared, count: Annotated[int, typer.Option(min=1)] = 1) -> None:
        """Work a little."""
        with one_line_for(SettingError):
            if count == 13:
                raise SettingError("--count: not 13")
        typer.echo(f"{settings.kafka_bootstrap_servers} {settings.metrics_address} {shared.names} {count}")
        typer.echo(f"{settings.kafka_security_protocol} {settings.kafka_username} {settings.kafka_password}")
        typer.echo(settings.kafka_password.get_secret_value() if settings.kafka_password else "no password")

    return app


def run(*words: str, **environment: str) -> tuple[int, str]:
    result = CliRunner().invoke(an_application(), ["work", *words], env={"COLUMNS": "200"} | environment)
    return result.exit_code, result.output


def test_the_fields_of_shared_options_are_options_beside_those_of_the_command() -> None:
    status, output = run("one", "two", "--kafka", "a:1", "--metrics-address", "[::]:80", "--count", "2")
    assert status == 0
    assert output.splitlines()[0] == f"a:1 {HostPort('::', 80)} ['one', 'two'] 2"


def test_the_help_shows_all_of_them() -> None:
    output = run("--help")[1]
    assert all(word in output for word in ("Work a little.", "--kafka", "--metrics-address", "--count", "names"))
    assert "SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS" in output


def test_kafka_comes_from_the_environment_too() -> None:
    assert run(SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS="b:2")[1].startswith("b:2 ")


SASL = {"SCHEDULERLOG_KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT", "SCHEDULERLOG_KAFKA_SASL_MECHANISM": "plain"}


def test_a_secret_comes_from_a_file_that_a_flag_or_a_variable_names(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("S3cret\n")
    who = ("--kafka", "a:1", "--kafka-username", "worker")
    by_variable = run(*who, **SASL, SCHEDULERLOG_KAFKA_PASSWORD_FILE=str(file))[1].splitlines()
    by_flag = run(*who, "--kafka-password-file", str(file), **SASL)[1].splitlines()
    assert by_variable == by_flag
    assert by_flag[1:] == ["sasl_plaintext worker **********", "S3cret"]


@pytest.mark.parametrize("content", [None, "", "\n", b"\xff"])
def test_a_file_without_a_secret_is_named(content: bytes | str | None, tmp_path: Path) -> None:
    file = tmp_path / "password"
    if content is not None:
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    status, output = run("--kafka", "a:1", "--kafka-username", "w", "--kafka-password-file", str(file), **SASL)
    assert status == 2
    assert output.startswith(f"--kafka-password-file: {file}")
    assert len(output.splitlines()) == 1


def test_a_secret_has_one_source(tmp_path: Path) -> None:
    both = {"SCHEDULERLOG_KAFKA_PASSWORD": "S3cret", "SCHEDULERLOG_KAFKA_PASSWORD_FILE": str(tmp_path)}
    status, output = run("--kafka", "a:1", "--kafka-username", "worker", **SASL, **both)
    assert (status, output) == (
        2,
        "SCHEDULERLOG_KAFKA_PASSWORD_FILE: SCHEDULERLOG_KAFKA_PASSWORD is set too, leave one of them out\n",
    )


def test_a_secret_has_no_flag_of_its_own() -> None:
    assert "--kafka-password-file" in run("--help")[1]
    assert "--kafka-password " not in run("--help")[1]


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
