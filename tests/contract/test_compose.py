"""docker-compose.yml has the processes and the settings of the small profile of deploy/kustomize."""

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from cli.single_process.parts import NAMES

KUSTOMIZE: Final = Path("deploy/kustomize")
SMALL: Final = yaml.load((KUSTOMIZE / "overlays/small/kustomization.yaml").read_text(), yaml.CSafeLoader)
SERVICES: Final[dict[str, Any]] = yaml.load(Path("docker-compose.yml").read_text(), yaml.CSafeLoader)["services"]
OF_AN_OPTION: Final = {"hami-log", "kai-log", "notify"}
"""Parts of the one process that an option asks for, in both."""
ONLY_HERE: Final = {"scheduler", "all", "provision", "install-dashboards"}
STORES: Final = {"kafka", "opensearch", "opensearch-dashboards"}


def list_manifest_commands() -> set[tuple[str, ...]]:
    """List the first two words of each process that the small profile runs, before one stands for all of them."""
    components = [KUSTOMIZE / "overlays/small" / name for name in SMALL["components"]]
    base = yaml.load((KUSTOMIZE / "base/kustomization.yaml").read_text(), yaml.CSafeLoader)["resources"]
    files = [KUSTOMIZE / "base" / name for name in base]
    files += [file for component in components for file in sorted(component.glob("*.yaml"))]
    documents = [document for file in files for document in yaml.load_all(file.read_text(), yaml.CSafeLoader)]
    specs = [document["spec"] for document in documents if document["kind"] in ("Deployment", "StatefulSet", "CronJob")]
    templates = [spec.get("jobTemplate", {}).get("spec", spec)["template"] for spec in specs]
    containers = [container for template in templates for container in template["spec"]["containers"]]
    return {tuple(container["args"][:2]) for container in containers}


def test_compose_has_each_process_of_the_small_profile() -> None:
    commands = {
        tuple(service["command"][:2])
        for name, service in SERVICES.items()
        if "command" in service and name not in ONLY_HERE
    }
    # Certificates are those of a cluster, and messages need a file of targets.
    assert commands == list_manifest_commands() - {("api", "certificate"), ("pipeline", "notify")}


def test_each_part_of_the_one_process_is_a_service_of_its_own() -> None:
    assert SERVICES.keys() - ONLY_HERE - STORES == set(NAMES) - OF_AN_OPTION
    assert SERVICES["all"]["command"][0] == "all"


def test_compose_has_the_settings_of_the_small_profile() -> None:
    (generator,) = SMALL["configMapGenerator"]
    settings = dict(line.split("=", 1) for line in generator["literals"])
    assert len(settings) == 4
    assert SERVICES["all"]["environment"].items() >= settings.items()
    # Topics are made by a service of its own here.
    partitions = "SCHEDULERLOG_TOPIC_PARTITIONS"
    assert SERVICES["provision"]["environment"][partitions] == settings[partitions]


@pytest.mark.parametrize("name", sorted(STORES - {"opensearch-dashboards"}))
def test_the_stores_are_of_the_version_that_the_small_profile_has(name: str) -> None:
    stores = (KUSTOMIZE / "overlays/small/stores.yaml").read_text()
    default = SERVICES[name]["image"].partition(":-")[2].removesuffix("}")
    assert f"image: {default}\n" in stores


def test_events_are_about_decisions_of_the_scheduler_here() -> None:
    (name,) = (word.removeprefix("--name=") for word in SERVICES["scheduler"]["command"] if word.startswith("--name="))
    assert f"--scheduler={name}" in SERVICES["events"]["command"]


def test_dashboards_are_of_the_version_of_opensearch() -> None:
    versions = {
        SERVICES[name]["image"].rpartition(":")[2].removesuffix("}") for name in STORES if name.startswith("opensearch")
    }
    assert len(versions) == 1


def test_up_waits_for_the_end_of_every_service_that_ends() -> None:
    """Compose takes one that no other needs ended for started while it runs, and for failed when it has ended."""
    ending = {name for name, service in SERVICES.items() if service.get("restart") == "no"}
    needs = [need for service in SERVICES.values() for need in service.get("depends_on", {}).items()]
    awaited = {name for name, need in needs if need["condition"] == "service_completed_successfully"}
    assert ending == {"provision", "install-dashboards"}
    assert ending <= awaited
    # Without the profile there is no such service.
    (optional,) = [need for name, need in needs if name == "install-dashboards"]
    assert optional["required"] is False


def test_only_what_reads_a_cluster_gets_its_credentials() -> None:
    with_kubeconfig = {
        name for name, service in SERVICES.items() if "SCHEDULERLOG_KUBECONFIG" in (service.get("environment") or {})
    }
    assert with_kubeconfig == {"kube-events", "events", "api", "all"}
    mounting = {name for name, item in SERVICES.items() if any("kubeconfig" in v for v in item.get("volumes", ()))}
    assert mounting == with_kubeconfig
    # Of these two the variable is no setting (docs/settings-services.md).
    for name in ("kube-events", "events"):
        command = SERVICES[name]["command"]
        assert command[command.index("--kubeconfig") + 1] == SERVICES[name]["volumes"][0].split(":")[-2], name
