"""The published documents say what the models say, and say it in the form that their standards ask for."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from schemas import generate
from schemas.__main__ import app
from schemas.answers.attempts import SchedulerLog
from schemas.codec.records import encode
from schemas.events import EVENTS, DevicesJudged
from schemas.topics import TOPICS
from tests.support.builders.events import build_devices_judged

ROOT = Path(__file__).parents[3]
ASYNCAPI = yaml.safe_load(generate.write_asyncapi())
SCHEMAS = sorted(path.relative_to(ROOT) for path in (ROOT / "schemas/generated").rglob("*.json"))


def test_the_checked_in_documents_are_those_of_the_models() -> None:
    assert generate.compare_documents() == "", "run `python -m schemas generate`"


def test_a_document_that_differs_is_shown_and_written_again(tmp_path: Path) -> None:
    generate.write(tmp_path)
    stale = tmp_path / "schemas/generated/io.schedulerlog.gone.v1.schema.json"
    stale.write_text("{}\n")
    reasons = tmp_path / "docs/reasons.md"
    reasons.write_text(reasons.read_text().replace("# Reason", "# Unreason"))
    diff = generate.compare_documents(tmp_path)
    assert "-# Unreason" in diff
    assert "+# Reason" in diff
    assert "-{}" in diff
    assert generate.write(tmp_path) == [Path("docs/reasons.md"), stale.relative_to(tmp_path)]
    assert generate.compare_documents(tmp_path) == ""
    assert generate.write(tmp_path) == []


def test_check_fails_with_the_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    assert CliRunner().invoke(app, ["check"]).exit_code == 0
    monkeypatch.setattr(generate, "compare_documents", lambda: "-old\n+new\n")
    result = CliRunner().invoke(app, ["check"])
    assert result.exit_code == 1
    assert "-old\n+new" in result.output
    assert "python -m schemas generate" in result.output


@cache
def check_once(text: str) -> None:
    """Check a schema; most define the same objects. A definition is a schema itself."""
    Draft202012Validator.check_schema(json.loads(text))


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_a_schema_is_valid_and_open_to_fields_of_later_versions(path: Path) -> None:
    schema = json.loads((ROOT / path).read_text("utf-8"))
    for part in (schema | {"$defs": {}}, *schema.get("$defs", {}).values()):
        check_once(json.dumps(part))
    assert schema["$id"].startswith("urn:schedulerlog:")
    objects = [schema, *schema.get("$defs", {}).values()]
    assert all(definition["additionalProperties"] is True for definition in objects)


def test_a_schema_carries_the_words_and_the_limits_of_the_model() -> None:
    schema = generate.build_json_schema(DevicesJudged, "x")
    assert schema["properties"]["devices"]["description"].endswith("the Y of ``X/Y Reason``.")
    assert schema["properties"]["verdict"]["type"] == "string"
    assert schema["properties"]["revision"]["items"] == {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}
    assert "title" not in schema["properties"]["devices"]
    assert schema["$defs"]["Request"]["properties"]["count"]["minimum"] == 0


@pytest.mark.parametrize(
    "change",
    [
        {"nodes": "node1"},
        {"verdict": ["picked"]},
        {"verdict": [-2]},
        {"rows": [1.5]},
        {"attempt_id": "a/b"},
        {"started_at": 1763700000},
        {"part": -1},
        {"pod": {"namespace": "llm"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_schema_refuses_what_the_model_refuses(change: dict[str, Any]) -> None:
    schema = Draft202012Validator(generate.build_json_schema(DevicesJudged, "x"))
    value = json.loads(encode(build_devices_judged()).value)
    assert schema.is_valid(value)
    assert not schema.is_valid(value | change)


def test_the_schema_of_the_answer_takes_the_proposals_json() -> None:
    answer = {
        "status": "failed",
        "filter": {
            "status": "passed",
            "summary": "",
            "nodes": [
                {
                    "name": "node1",
                    "status": "failed",
                    "score": 0,
                    "containers": [{"name": "container1", "status": "failed", "reason": "2/8 NumaNotFit"}],
                },
                {"name": "node3", "status": "passed", "score": 2.35, "containers": [{"name": "c", "status": "passed"}]},
            ],
        },
        "bind": {"status": "failed", "summary": "Failed to lock node"},
    }
    schema = Draft202012Validator(generate.build_json_schema(SchedulerLog, "x"))
    assert list(schema.iter_errors(answer)) == []
    assert not schema.is_valid(answer | {"status": "passed"})


def resolve(reference: str) -> Any:
    part: Any = ASYNCAPI
    for key in reference.removeprefix("#/").split("/"):
        part = part[key]
    return part


def test_the_asyncapi_document_has_a_channel_per_topic_with_its_kafka_settings() -> None:
    channels = ASYNCAPI["channels"]
    assert [channel["address"] for channel in channels.values()] == [topic.name for topic in TOPICS]
    decisions = channels["decisions"]["bindings"]["kafka"]
    assert (decisions["partitions"], decisions["topicConfiguration"]["retention.ms"]) == (12, 7 * 24 * 3600 * 1000)
    policies = [channel["bindings"]["kafka"]["topicConfiguration"]["cleanup.policy"] for channel in channels.values()]
    compacted = [topic.compacted_after is not None for topic in TOPICS]
    assert policies == [["compact", "delete"] if is_compacted else ["delete"] for is_compacted in compacted]
    assert compacted.count(True) == 2


def test_every_operation_names_messages_of_its_own_channel() -> None:
    # AsyncAPI 3.0: an operation's messages refer to those of its channel, which refer to the components.
    operations = ASYNCAPI["operations"]
    assert {operation["action"] for operation in operations.values()} == {"send", "receive"}
    for operation in operations.values():
        channel = operation["channel"]["$ref"]
        assert resolve(channel)["address"]
        for message in operation["messages"]:
            assert message["$ref"].startswith(f"{channel}/messages/")
            assert resolve(resolve(message["$ref"])["$ref"])["name"]


def test_every_topic_is_sent_to_by_some_operation() -> None:
    sent = {
        operation["channel"]["$ref"] for operation in ASYNCAPI["operations"].values() if operation["action"] == "send"
    }
    assert sent == {f"#/channels/{name}" for name in ASYNCAPI["channels"]}


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.__name__)
def test_a_message_names_its_headers_key_and_payload_and_has_an_example(event: Any) -> None:
    message = resolve(f"#/components/messages/{event.__name__}")
    path = Path("schemas/generated") / message["payload"]["schema"]["$ref"]
    assert path in SCHEMAS
    assert message["headers"]["properties"]["ce_type"]["const"] == event.TYPE
    assert message["bindings"]["kafka"]["key"]["description"]
    schema = Draft202012Validator(json.loads((ROOT / path).read_text("utf-8")))
    assert [list(schema.iter_errors(example["payload"])) for example in message["examples"]] == [[]]


def test_a_secured_server_names_ways_to_prove_who_one_is() -> None:
    plain, secured = ASYNCAPI["servers"]["kafka"], ASYNCAPI["servers"]["securedKafka"]
    assert "security" not in plain
    assert {resolve(scheme["$ref"])["type"] for scheme in secured["security"]} == {"X509", "scramSha512", "plain"}


def test_the_headers_in_the_document_are_those_of_a_record() -> None:
    values = resolve("#/components/messages/DevicesJudged/headers")
    headers = {name: value.decode() for name, value in encode(build_devices_judged()).headers}
    assert sorted(values["required"]) == sorted(headers)
    Draft202012Validator(values).validate(headers)
