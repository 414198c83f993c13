"""Commands and manifests for suggested changes: expected ones are written by hand from kubectl's documentation."""

import json
import shlex
from typing import Any

import pytest
import yaml

from page.patches import write_patch


def an_edit(constraint: str, where: str, before: str = "", after: str = "") -> dict[str, Any]:
    return {"constraint": constraint, "where": where, "before": before, "after": after}


LESS_MEMORY = an_edit("memory", "main: nvidia.com/gpumem", "3000", "2360")
NO_TYPE = an_edit("type", "nvidia.com/use-gputype", "A100")


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "CronJob"])
def test_resources_are_set_in_the_template_of_a_workload_that_takes_it(kind: str) -> None:
    patch = write_patch([LESS_MEMORY], "llm", "web-0", f"{kind}/web")
    assert patch
    assert patch.text == (
        f"kubectl -n llm set resources {kind.lower()}/web -c main "
        "--limits=nvidia.com/gpumem=2360 --requests=nvidia.com/gpumem=2360"
    )
    assert (patch.note, patch.owner) == ("patch", f"{kind}/web")


@pytest.mark.parametrize("owner", ["", "Job/train", "ReplicaSet/web-5f", "PyTorchJob/train"])
def test_other_pods_get_the_part_of_the_manifest_to_create_again(owner: str) -> None:
    patch = write_patch([LESS_MEMORY, an_edit("count", "main: nvidia.com/gpu", "5", "4")], "llm", "train-0", owner)
    assert patch
    limits = {"nvidia.com/gpumem": "2360", "nvidia.com/gpu": "4"}
    assert yaml.safe_load(patch.text) == {"spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]}}
    assert (patch.note, patch.owner) == ("again", owner)


def test_an_annotation_of_a_pod_is_removed_where_it_is_and_of_a_workload_in_its_template() -> None:
    alone = write_patch([NO_TYPE], "llm", "train-0", "")
    assert alone
    assert alone.text == "kubectl -n llm annotate pod train-0 nvidia.com/use-gputype-"
    patch = write_patch([NO_TYPE], "llm", "web-0", "Deployment/web")
    assert patch
    *command, written = shlex.split(patch.text)
    assert command == ["kubectl", "-n", "llm", "patch", "deployment/web", "-p"]
    template = {"metadata": {"annotations": {"nvidia.com/use-gputype": None}}}
    assert json.loads(written) == {"spec": {"template": template}}
    nightly = write_patch([NO_TYPE], "llm", "web-0", "CronJob/nightly")
    assert nightly
    assert json.loads(shlex.split(nightly.text)[-1]) == {"spec": {"jobTemplate": {"spec": {"template": template}}}}


def test_a_selector_is_dropped_or_corrected_and_taints_are_tolerated() -> None:
    edits = [
        an_edit("selector", "pool", "pool=a", ""),
        an_edit("selector", "zone", "zone=eu", "zone=eu-1"),
        an_edit("taint", "gpu", "", "gpu=yes:NoSchedule"),
        an_edit("taint", "spot", "", "spot:NoExecute"),
    ]
    patch = write_patch(edits, "llm", "web-0", "Deployment/web")
    assert patch
    # A list of tolerations in a patch would replace those that the template has.
    assert yaml.safe_load(patch.text) == {
        "spec": {
            "tolerations": [
                {"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"},
                {"key": "spot", "operator": "Exists", "effect": "NoExecute"},
            ],
            "nodeSelector": {"pool": None, "zone": "eu-1"},
        }
    }


@pytest.mark.parametrize(
    ("after", "quantity"), [("16 GiB", "16Gi"), ("500m", "500m"), ("1,024 MiB", "1024Mi"), ("2.5", "2.5")]
)
def test_amounts_are_written_as_quantities(after: str, quantity: str) -> None:
    patch = write_patch([an_edit("request", "main: memory", "32 GiB", after)], "llm", "web-0", "Deployment/web")
    assert patch
    assert patch.text.endswith(f"--limits=memory={quantity} --requests=memory={quantity}")


def test_nodes_get_commands_for_an_administrator() -> None:
    uncordon = write_patch([an_edit("uncordon", "node3", "cordoned")], "llm", "train-0", "Job/train")
    assert uncordon
    assert (uncordon.text, uncordon.note) == ("kubectl uncordon node3", "")


@pytest.mark.parametrize(
    "edits",
    [
        [an_edit("use", "ml/solver-0", "5 devices")],
        [an_edit("health", "GPU-1", "unhealthy")],
        [LESS_MEMORY, an_edit("quota", "limits.memory", "1", "2")],
        [an_edit("selector", "nodeAffinity", "pool in a", "")],
    ],
)
def test_a_change_without_a_command_has_no_patch(edits: list[dict[str, Any]]) -> None:
    assert write_patch(edits, "llm", "train-0", "Deployment/web") is None


def test_names_that_would_be_shell_are_quoted() -> None:
    hostile = an_edit("memory", "a b; rm -rf /: nvidia.com/gpumem", "2", "1")
    patch = write_patch([hostile], "llm", "web-0", "Deployment/web")
    assert patch
    assert shlex.split(patch.text)[6:8] == ["-c", "a b; rm -rf /"]
