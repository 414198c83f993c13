"""The values of the chart: the defaults fit their schema, and what a ConfigMap must not hold is no setting of it."""

import json
import re
from pathlib import Path

import yaml
from jsonschema import Draft202012Validator

from deploy.helm_from_kustomize.edits import EDITS
from deploy.helm_from_kustomize.plan import COMPONENTS, PATCHING
from deploy.helm_from_kustomize.values import SETTINGS
from deploy.helm_from_kustomize.values_files import write_defaults, write_schema

SCHEMA = json.loads(write_schema())


def test_the_defaults_fit_their_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert list(Draft202012Validator(SCHEMA).iter_errors(yaml.safe_load(write_defaults()))) == []


def test_secrets_are_no_settings_and_their_files_are() -> None:
    assert "SCHEDULERLOG_KAFKA_PASSWORD" not in SETTINGS
    assert {"SCHEDULERLOG_KAFKA_PASSWORD_FILE", "SCHEDULERLOG_INDEX_LINGER"} <= {*SETTINGS}


def test_the_chart_knows_the_settings_of_every_command_that_it_starts() -> None:
    commands = json.loads(Path("deploy/helm/files/settings.json").read_text())
    texts = [path.read_text() for path in Path("deploy/helm/templates").glob("*.yaml")]
    started = {
        command
        for text in texts
        for call in re.findall(r'"schedulerlog.podAnnotations" \(list \. (.+?)\) \}\}', text)
        for command in re.findall(r'"([a-z -]+)"', call)
    } - {"one"}
    assert len(started) > 15
    # It reads no setting.
    assert started - commands.keys() == {"api certificate"}


def test_every_condition_and_edit_names_a_value_that_there_is() -> None:
    values = yaml.safe_load(write_defaults())
    texts = [component.condition for component in (*COMPONENTS, *PATCHING)]
    named = {word.strip("()") for text in texts for word in text.split() if word.strip("()").startswith(".Values.")}
    assert len(named) > 20
    for name in named:
        part = values
        for key in name.removeprefix(".Values.").split("."):
            assert key in part, name
            part = part[key]
    assert len(EDITS) > 40
