"""Command lines and variables of deploy/kustomize, each of which `schedulerlog` has."""

import re
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from api.http.aggregated.discovery import GROUP, LISTS
from cli.command import app
from engine.fit import device_config
from runtime.settings.variables import read_variable_names

KUSTOMIZE = Path(__file__).parents[3] / "deploy" / "kustomize"
IMAGE = "ghcr.io/schedulerlog/schedulerlog"


def iterate_documents() -> Iterator[Any]:
    for path in sorted(KUSTOMIZE.rglob("*.yaml")):
        yield from (document for document in yaml.safe_load_all(path.read_text()) if isinstance(document, dict))


def iterate_command_lines() -> Iterator[list[str]]:
    for document in iterate_documents():
        for container in iterate_containers(document):
            if container.get("image") == IMAGE:
                yield container["args"]


def iterate_containers(document: Any) -> Iterator[Any]:
    spec = document.get("spec") or {}
    template = spec.get("jobTemplate", {}).get("spec", spec).get("template") or {}
    yield from template.get("spec", {}).get("containers", ())


def list_settings() -> set[str]:
    """List the variables of the ConfigMap and of single containers."""
    literals = [line for path in KUSTOMIZE.rglob("kustomization.yaml") for line in path.read_text().splitlines()]
    lines = [*(KUSTOMIZE / "base/settings.env").read_text().splitlines(), *literals]
    in_pods = re.findall(
        r"name: (SCHEDULERLOG_\w+), valueFrom", "".join(p.read_text() for p in KUSTOMIZE.rglob("*.yaml"))
    )
    return {match[1] for line in lines if (match := re.match(r"(?:\s+- )?(SCHEDULERLOG_\w+)=", line))} | set(in_pods)


def test_there_are_commands_and_settings() -> None:
    assert len(list(iterate_command_lines())) >= 14
    assert "SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS" in list_settings()


@pytest.mark.parametrize("words", list(iterate_command_lines()), ids=" ".join)
def test_a_process_is_started_by_a_command_that_there_is(words: list[str]) -> None:
    command, remaining_words = get_command(app), words
    context: Any = None
    while hasattr(command, "resolve_command"):
        context = command.make_context("schedulerlog", [], parent=context, resilient_parsing=True)
        _, command, remaining_words = command.resolve_command(context, remaining_words)
    parser = command.make_parser(command.context_class(command, parent=context))
    # Raises where an option is not known; what is left over would be arguments that no container has.
    assert parser.parse_args(list(remaining_words))[1] == []


def test_l13_kubelet_and_prometheus_reach_what_each_process_says_about_itself() -> None:
    """By default it is served on loopback, or nowhere."""
    (address,) = re.findall(r"SCHEDULERLOG_METRICS_ADDRESS=(\S+)", (KUSTOMIZE / "base/settings.env").read_text())
    ports = [
        port["containerPort"]
        for document in iterate_documents()
        for container in iterate_containers(document)
        for port in container.get("ports", ())
        if port["name"] == "metrics"
    ]
    assert len(ports) >= 8
    assert {f"0.0.0.0:{port}" for port in ports} == {address}


def test_who_may_view_a_namespace_may_read_every_list_of_the_aggregated_api() -> None:
    """The API server asks for the right to the resource of the path, before it sends the request on."""
    rights = yaml.safe_load_all((KUSTOMIZE / "base/rights.yaml").read_text())
    (role,) = [document for document in rights if document["metadata"]["name"] == "schedulerlog-view"]
    allowed = {resource for rule in role["rules"] for resource in rule["resources"]}
    assert allowed == {"pods/schedulerlog", "workloads", "simulations", *LISTS}
    assert {group for rule in role["rules"] for group in rule["apiGroups"]} == {GROUP}


def test_every_variable_is_a_setting() -> None:
    assert list_settings() <= read_variable_names()


def test_kube_scheduler_leaves_the_resources_of_every_vendor_to_the_extender() -> None:
    """One that it does not leave is compared with the node's allocatable, where most of them do not stand."""
    configuration = yaml.safe_load((KUSTOMIZE / "components" / "scheduler" / "kube-scheduler.yaml").read_text())
    managed = configuration["extenders"][0]["managedResources"]
    vendors = device_config.read_shipped()
    names = {name for vendor in vendors for name in astuple(vendor.resources) if name}
    assert {resource["name"] for resource in managed} == names
    assert all(resource["ignoredByScheduler"] for resource in managed)


def test_a_pod_is_unready_while_a_store_refuses_who_it_is() -> None:
    """docs/deploy.md: all but the API, whose answers do not need the stores, and the scheduler, which other pods call.

    The server of MCP asks the API alone.
    """
    probes: dict[str, str] = {}
    for document in iterate_documents():
        for container in iterate_containers(document):
            if container.get("image") == IMAGE and (probe := container.get("readinessProbe")):
                probes[document["metadata"]["name"].removeprefix("schedulerlog-")] = probe.get("httpGet", {}).get(
                    "path"
                )
    others = {name: probes.pop(name) for name in ("api", "scheduler", "mcp")}
    assert others == {"api": "/readyz", "scheduler": "/healthz", "mcp": None}
    assert len(probes) >= 11
    assert set(probes.values()) == {"/readyz/credentials"}
