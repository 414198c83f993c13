"""docs/deploy.md: every overlay, component, object and command that it names exists, and none is left out."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from cli.command import app
from runtime.settings.variables import read_variable_names

PAGE = Path("docs/deploy.md").read_text(encoding="utf-8")
KUSTOMIZE = Path("deploy/kustomize")
# Parts of overlays, and what is patched into HAMi's own Deployment.
OF_OVERLAYS = {"pods", "labels", "scheduler", "hami", "hami-log", "kai-log", "kube-events"}
MANIFESTS = [
    manifest
    for path in sorted(KUSTOMIZE.rglob("*.yaml"))
    for manifest in yaml.load_all(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
    if isinstance(manifest, dict)
]
TEXT = "\n".join(path.read_text(encoding="utf-8") for path in sorted(KUSTOMIZE.rglob("*.yaml")))


def read_rows(heading: str) -> list[list[str]]:
    """Read the cells of the first table below a heading."""
    table = re.search(r"(?:^\|.*\n)+", PAGE.partition(f"\n## {heading}\n")[2], re.MULTILINE)
    assert table
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table[0].splitlines()[2:]]


def test_every_overlay_is_in_the_table_or_explained() -> None:
    overlays = {path.name for path in (KUSTOMIZE / "overlays").iterdir()}
    named = {overlay for row in read_rows("One command") for overlay in re.findall(r"`overlays/([\w-]+)`", row[1])}
    assert named == overlays - {"production", "production-scheduler"}
    assert "`overlays/production`" in PAGE
    assert "`overlays/production-scheduler`" in PAGE


def test_every_component_is_in_the_table() -> None:
    components = {
        str(path.parent.relative_to(KUSTOMIZE / "components"))
        for path in (KUSTOMIZE / "components").rglob("kustomization.yaml")
    }
    named = {re.findall(r"`([\w/-]+)`", row[0])[0] for row in read_rows("A cluster with rules")}
    assert named == components - OF_OVERLAYS


@pytest.mark.parametrize("store", ["kafka", "opensearch"])
def test_the_keys_of_a_secret_are_the_files_that_components_name(store: str) -> None:
    keys = set(re.findall(rf"_FILE=/etc/schedulerlog/{store}/(\S+)", TEXT))
    written = [row[2] for row in read_rows("A cluster with rules") if f"`schedulerlog-{store}`" in row[2]]
    assert len(keys) > 1
    assert all(any(f"`{key}`" in cell for cell in written) for key in keys)


@pytest.mark.parametrize(
    ("kind", "name"),
    sorted(set(re.findall(r"\b(deployment|statefulset|job)[/ ](schedulerlog-[\w-]+)", PAGE))),
)
def test_a_workload_that_a_command_names_is_installed(kind: str, name: str) -> None:
    manifests = [
        manifest
        for manifest in MANIFESTS
        if manifest.get("kind", "").lower() == kind and manifest["metadata"]["name"] == name
    ]
    assert manifests


def test_the_label_by_which_jobs_are_deleted_is_on_every_job() -> None:
    """One that is left over makes the next `apply` fail: a Job can't be changed."""
    commands = re.findall(r"kubectl delete job -n schedulerlog (.+?)(?:`|\n)", PAGE)
    assert len(commands) == 2
    assert set(commands) == {"-l app.kubernetes.io/part-of=schedulerlog"}
    jobs = [manifest for manifest in MANIFESTS if manifest.get("kind") == "Job"]
    assert len(jobs) >= 6
    assert all(manifest["metadata"]["labels"]["app.kubernetes.io/part-of"] == "schedulerlog" for manifest in jobs)


def test_the_namespace_is_made_before_the_first_secret() -> None:
    lines = PAGE.splitlines()
    first = next(number for number, line in enumerate(lines) if "kubectl create secret" in line)
    assert any("kubectl create namespace schedulerlog" in line for line in lines[:first])


@pytest.mark.parametrize("name", sorted(set(re.findall(r"SCHEDULERLOG_[A-Z_]+[A-Z]", PAGE))))
def test_a_setting_that_the_page_names_is_one(name: str) -> None:
    assert name in read_variable_names()


COMMANDS = sorted(set(re.findall(r"(?:`|    |-- )schedulerlog ((?:pipeline )?[a-z]+)(?= |`|\n)", PAGE)))


@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_that_the_page_names_is_one(words: str) -> None:
    assert "doctor" in COMMANDS
    command: Any = get_command(app)
    context: Any = None
    for word in words.split():
        context = command.make_context("schedulerlog", [], parent=context, resilient_parsing=True)
        _, command, _ = command.resolve_command(context, [word])
        assert command
