"""The topics and users of deploy/'s component for Strimzi are those of the contract and of the processes."""

from pathlib import Path
from typing import Any

import yaml

from runtime.kafka.topics import build_configuration
from schemas.topics import TOPICS

KUSTOMIZE = Path(__file__).parents[3] / "deploy" / "kustomize"
COMPONENT = KUSTOMIZE / "components" / "strimzi"
PARTS = ("provision", "retention", "dashboards", "roles", "policies", "certificate", "mcp", "mcp-certificate", "notify")
WITHOUT_KAFKA = {f"schedulerlog-{name}" for name in PARTS}
"""``provision`` makes the index templates alone there."""


def read_documents(path: Path) -> list[dict[str, Any]]:
    return [document for document in yaml.load_all(path.read_text(), yaml.CSafeLoader) if isinstance(document, dict)]


def read_users() -> dict[str, list[dict[str, Any]]]:
    """Read the rules of each user."""
    users = read_documents(COMPONENT / "users.yaml")
    return {user["metadata"]["name"]: user["spec"]["authorization"]["acls"] for user in users}


def test_each_topic_is_made_as_provision_would_make_it() -> None:
    topics = {
        topic["metadata"]["name"]: (
            topic["spec"]["partitions"],
            {name: str(value) for name, value in topic["spec"]["config"].items()},
        )
        for topic in read_documents(COMPONENT / "topics.yaml")
    }
    assert topics == {topic.name: (topic.partitions, build_configuration(topic)) for topic in TOPICS}


def test_each_process_that_uses_kafka_has_a_user() -> None:
    workloads = {
        document["metadata"]["name"]
        for path in KUSTOMIZE.rglob("*.yaml")
        for document in read_documents(path)
        if document.get("kind") in ("Deployment", "StatefulSet", "Job", "CronJob") and "hami" not in path.parent.name
    }
    started = {name for name in workloads if name.startswith("schedulerlog-")} | {"schedulerlog-hami-log"}
    assert set(read_users()) == started - WITHOUT_KAFKA


def list_kafka_secrets() -> dict[str, list[str]]:
    """List the Secrets that each process mounts for Kafka."""
    specs = {
        document["metadata"]["name"]: document["spec"]["template"]["spec"]
        for path in KUSTOMIZE.rglob("*.yaml")
        for document in read_documents(path)
        if document.get("kind") in ("Deployment", "StatefulSet", "Job") and document["spec"].get("template")
    }
    return {
        name: [source["secret"]["name"] for source in volume["projected"]["sources"]]
        for name, spec in specs.items()
        for volume in spec.get("volumes", ())
        if volume["name"] == "kafka" and "projected" in volume
    }


def test_the_secret_of_kafka_is_given_to_those_that_use_it() -> None:
    """A password in other pods could be used there too; `provision` makes topics where Strimzi does not."""
    common, authority = "schedulerlog-kafka", "kafka-cluster-ca-cert"
    assert list_kafka_secrets() == {
        **{user: [common, authority, user] for user in read_users()},
        "schedulerlog-provision": [common],
    }


def test_a_right_is_about_one_topic_of_the_contract_or_one_group() -> None:
    names = {topic.name for topic in TOPICS}
    resources = [rule["resource"] for rules in read_users().values() for rule in rules]
    assert {resource["name"] for resource in resources if resource["type"] == "topic"} <= names
    assert {resource["type"] for resource in resources} == {"topic", "group"}
    # Of processes whose group, or lease, has the cluster's name in it.
    assert {resource["name"] for resource in resources if resource["patternType"] != "literal"} == {
        f"schedulerlog-{process}-" for process in ("events", "kube-events", "hami-log", "kai-log")
    }
