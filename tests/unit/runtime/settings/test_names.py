"""A cluster's name is refused before anything starts, by the same rule as in the contract."""

import pytest
import typer
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from typer.testing import CliRunner

from runtime.cli.cli import create_application
from runtime.settings import names
from runtime.settings.flags import with_settings
from runtime.settings.settings import ClusterName, EnvironmentSettings
from schemas import events

CONTRACT = TypeAdapter(events.ClusterName)
TEXTS = st.text(alphabet="aZ09-._ \né", max_size=70)


class Named(EnvironmentSettings):
    cluster_name: ClusterName = names.DEFAULT_CLUSTER


def is_allowed(text: str) -> bool:
    try:
        names.check_cluster_name(text)
    except ValueError:
        return False
    return True


@given(TEXTS)
@example("a" * 63)
@example("a" * 64)
@example("a\n")
def test_a_name_is_taken_just_where_the_contract_takes_it(text: str) -> None:
    try:
        CONTRACT.validate_python(text)
        is_valid = True
    except ValidationError:
        is_valid = False
    assert is_allowed(text) == is_valid


def test_the_default_is_that_of_the_contract() -> None:
    assert names.DEFAULT_CLUSTER == events.DEFAULT_CLUSTER


@given(TEXTS)
def test_any_text_becomes_a_valid_name_or_none(text: str) -> None:
    name = names.to_cluster_name(text)
    assert not name or is_allowed(name)


@pytest.mark.parametrize(
    ("text", "name"),
    [("prod-east", "prod-east"), ("Prod_East", "prod-east"), ("arn:aws:eks/a", "arn-aws-eks-a"), ("_", "")],
)
def test_texts_that_shippers_send_become_names(text: str, name: str) -> None:
    assert names.to_cluster_name(text) == name


def test_a_wrong_name_is_one_line_that_says_what_to_write() -> None:
    app = create_application("A program.")

    @app.callback()
    def main() -> None:
        """Run a program."""

    @app.command()
    @with_settings(Named)
    def run(named: Named) -> None:
        typer.echo(named.cluster_name)

    assert CliRunner().invoke(app, ["run"]).stdout == "default\n"
    assert CliRunner().invoke(app, ["run"], env={"SCHEDULERLOG_CLUSTER_NAME": "east"}).stdout == "east\n"
    wrong = CliRunner().invoke(app, ["run", "--cluster-name", "East"])
    assert wrong.exit_code == 2
    assert wrong.stderr == (
        "--cluster-name: 'East' can't name a cluster: write at most 63 lower-case letters, digits, - and ., with a "
        "letter or digit at both ends, as in prod-east\n"
    )
