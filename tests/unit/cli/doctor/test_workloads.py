"""Pods that do not start. Statuses are as a kubelet and a scheduler write them (Kubernetes' API reference)."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.doctor.workloads import (
    check_config_maps,
    check_deployments,
    check_pods,
    check_secret,
    collect_secrets,
    list_config_maps,
    list_optional_secrets,
)

DEPLOY = Path(__file__).parents[4] / "deploy/kustomize"


def a_pod(name: str = "api-1", **spec: Any) -> dict[str, Any]:
    container = {"name": "api", "image": "example/api:1"} | spec.pop("container", {})
    return {"metadata": {"name": name, "namespace": "s"}, "spec": {"containers": [container]} | spec, "status": {}}


def make_waiting_status(reason: str, message: str = "", last: Any = None) -> dict[str, Any]:
    state = {"name": "api", "image": "example/api:1", "state": {"waiting": {"reason": reason, "message": message}}}
    return {"containerStatuses": [state | ({"lastState": {"terminated": last}} if last else {})]}


UNSCHEDULABLE = {
    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes fit."}]
}
RUNNING = {
    "conditions": [{"type": "PodScheduled", "status": "True"}],
    "containerStatuses": [{"name": "api", "image": "example/api:1", "state": {"running": {}}}],
}


@pytest.mark.parametrize(
    ("status", "problem", "remedy"),
    [
        (UNSCHEDULABLE, "is on no node: 0/3 nodes fit.", "Make room"),
        (make_waiting_status("ImagePullBackOff"), "can't get its image example/api:1 (ImagePullBackOff)", "`images`"),
        (
            make_waiting_status("CrashLoopBackOff", last={"exitCode": 2, "reason": "Error"}),
            "ends again and again (exit code 2, Error)",
            "kubectl logs -n s api-1 -c api --previous",
        ),
        (
            make_waiting_status("CreateContainerConfigError", 'secret "x" not found'),
            'can\'t be started: secret "x" not found',
            "Make what it names",
        ),
    ],
)
def test_a_pod_that_does_not_start_says_why(status: Any, problem: str, remedy: str) -> None:
    (faults,) = check_pods([a_pod() | {"status": status}])
    assert (faults.about, faults.problem) == ("pod api-1", problem)
    assert remedy in faults.remedy


@pytest.mark.parametrize(
    "status", [{}, RUNNING, make_waiting_status("ContainerCreating"), make_waiting_status("PodInitializing")]
)
def test_a_pod_that_runs_or_begins_is_no_finding(status: Any) -> None:
    assert list(check_pods([a_pod() | {"status": status}])) == []


def test_pods_with_one_cause_are_one_finding() -> None:
    faults = list(check_pods([a_pod(name) | {"status": UNSCHEDULABLE} for name in ("a", "b", "c")]))
    assert [fault.about for fault in faults] == ["pod a and 2 more"]


SETTINGS = {"settings": {"SCHEDULERLOG_KAFKA_CA_FILE": "/etc/k/ca.crt", "SCHEDULERLOG_API_CERT_FILE": "/etc/a/tls.crt"}}
MOUNTED = {"envFrom": [{"configMapRef": {"name": "settings"}}], "volumeMounts": [{"name": "k", "mountPath": "/etc/k"}]}


@pytest.mark.parametrize(
    ("pod", "wanted"),
    [
        # Of a whole Secret the keys are the files that settings name below its mount, and no others.
        (
            a_pod(container=MOUNTED, volumes=[{"name": "k", "secret": {"secretName": "kafka"}}]),
            {"kafka": {"", "ca.crt"}},
        ),
        (
            a_pod(
                container=MOUNTED | {"args": ["mcp", "--key-file=/etc/k/tls.key", "--url=https://x"]},
                volumes=[{"name": "k", "secret": {"secretName": "kafka"}}],
            ),
            {"kafka": {"", "ca.crt", "tls.key"}},
        ),
        (
            a_pod(
                volumes=[{"name": "k", "projected": {"sources": [{"secret": {"name": "p", "items": [{"key": "x"}]}}]}}]
            ),
            {"p": {"", "x"}},
        ),
        (
            a_pod(container={"env": [{"name": "U", "valueFrom": {"secretKeyRef": {"name": "d", "key": "username"}}}]}),
            {"d": {"", "username"}},
        ),
        (
            a_pod(
                container={
                    "env": [{"name": "U", "valueFrom": {"secretKeyRef": {"name": "d", "key": "u", "optional": True}}}]
                },
                volumes=[
                    {"name": "k", "secret": {"secretName": "kafka", "optional": True}},
                    {"name": "t", "emptyDir": {}},
                ],
            ),
            {},
        ),
    ],
)
def test_the_secrets_of_a_pod_are_those_of_its_volumes_and_variables(pod: Any, wanted: Any) -> None:
    assert {name: {*keys} for name, keys in collect_secrets([pod], SETTINGS, {}).items()} == wanted


@pytest.mark.parametrize(
    ("there", "wanted"),
    [
        # None has the file: the first could.
        ({}, {"kafka": {"", "ca.crt"}}),
        ({"kafka": ["password"]}, {"kafka": {"", "ca.crt"}}),
        ({"kafka": ["ca.crt"]}, {"kafka": {"", "ca.crt"}}),
        ({"cluster-ca": ["ca.pem"]}, {"cluster-ca": {"", "ca.pem"}}),
    ],
)
def test_of_optional_secrets_one_has_to_have_the_file_of_a_setting(there: Any, wanted: Any) -> None:
    items = [{"key": "ca.pem", "path": "ca.crt"}]
    sources = [{"name": "kafka", "optional": True}, {"name": "cluster-ca", "optional": True, "items": items}]
    volume = {"name": "k", "projected": {"sources": [{"secret": source} for source in sources]}}
    pod = a_pod(container=MOUNTED, volumes=[volume])
    assert list_optional_secrets([pod], SETTINGS) == ["cluster-ca", "kafka"]
    assert {name: {*keys} for name, keys in collect_secrets([pod], SETTINGS, there).items()} == wanted


def test_a_secret_that_is_missing_or_lacks_a_key_is_a_finding() -> None:
    wanted = {"": "api-1", "ca.crt": "api-1", "tls.key": "api-1"}
    (missing,) = check_secret("schedulerlog-kafka", wanted, None)
    assert (missing.about, missing.problem) == ("Secret schedulerlog-kafka", "is missing; api-1 waits for it")
    (lacking,) = check_secret("schedulerlog-kafka", wanted, ["ca.crt", "key.pem"])
    assert lacking.problem == "has no tls.key, but ca.crt, key.pem"
    assert list(check_secret("schedulerlog-kafka", wanted, ["tls.key", "ca.crt", "more"])) == []
    (missing_secret,) = check_secret("schedulerlog-api-tls", wanted, None)
    assert "schedulerlog-certificate" in missing_secret.remedy


def test_a_misspelt_setting_and_a_config_map_that_is_missing_are_findings() -> None:
    used = list_config_maps(
        [a_pod(container={"envFrom": [{"configMapRef": {"name": name}}]}) for name in ("old", "new")]
    )
    there = {"new": {"SCHEDULERLOG_KAFA_CA_FILE": "x"}, "unused": {"SCHEDULERLOG_NONSENSE": "y"}}
    assert [(fault.about, fault.problem) for fault in check_config_maps(used, there)] == [
        ("ConfigMap new", "without effect: SCHEDULERLOG_KAFA_CA_FILE (do you mean SCHEDULERLOG_KAFKA_CA_FILE?)"),
        ("ConfigMap old", "is missing"),
    ]


def test_a_deployment_whose_pods_are_refused_says_why() -> None:
    refused = {"type": "ReplicaFailure", "status": "True", "message": "violates PodSecurity"}
    sound = {"type": "Available", "status": "True"}
    deployments = [
        {"metadata": {"name": name}, "status": {"conditions": [condition]}}
        for name, condition in (("a", refused), ("b", sound))
    ]
    (faults,) = check_deployments(deployments)
    assert (faults.about, faults.problem) == ("Deployment a", "has no pod: violates PodSecurity")


def test_what_deploy_sets_is_known() -> None:
    lines = (DEPLOY / "base/settings.env").read_text().splitlines()
    data = dict(line.split("=", 1) for line in lines)
    for path in DEPLOY.glob("*/**/kustomization.yaml"):
        for generated in yaml.safe_load(path.read_text()).get("configMapGenerator", ()):
            data |= dict(line.split("=", 1) for line in generated.get("literals", ()))
    assert len(data) > 15
    assert list(check_config_maps({"settings"}, {"settings": data})) == []


@pytest.mark.parametrize(
    ("variable", "secrets"),
    [("SCHEDULERLOG_NOTIFY_TARGETS", []), ("SCHEDULERLOG_KAFKA_CA_FILE", ["schedulerlog-notify-targets"])],
)
def test_a_secret_without_which_a_part_is_left_out_is_not_missing(variable: str, secrets: list[str]) -> None:
    # Of `overlays/small`: messages are sent once the Secret is there.
    folder = "/etc/schedulerlog/notify"
    container = {
        "env": [{"name": variable, "value": f"{folder}/targets.yaml"}],
        "volumeMounts": [{"name": "targets", "mountPath": folder}],
    }
    volume = {"name": "targets", "secret": {"secretName": "schedulerlog-notify-targets", "optional": True}}
    assert list_optional_secrets([a_pod(container=container, volumes=[volume])], {}) == secrets
