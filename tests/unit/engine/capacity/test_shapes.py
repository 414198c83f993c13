"""Pods of a question about capacity: limits by the names of HAMi's resources, and the one workload of a file."""

from pathlib import Path

import pytest

from engine.capacity.shapes import Shape, build_pod, build_template, read_template
from engine.fit import device_config
from engine.fit.manifests import ManifestError

VENDORS = device_config.read_shipped()
POD = b"kind: Pod\napiVersion: v1\nmetadata: {name: a}\nspec: {containers: [{name: c}]}\n"


@pytest.mark.parametrize(
    ("shape", "limits"),
    [
        (Shape(2), {"nvidia.com/gpu": "2"}),
        (Shape(1, 8000), {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "8000"}),
        (Shape(1, cores_percent=30), {"nvidia.com/gpu": "1", "nvidia.com/gpucores": "30"}),
        (Shape(0), {}),
    ],
)
def test_amounts_that_are_requested_are_limits(shape: Shape, limits: dict[str, str]) -> None:
    pod = build_pod(shape, VENDORS)
    assert [container["resources"] for container in pod["spec"]["containers"]] == [{"limits": limits}]
    assert (pod["metadata"]["namespace"], pod["metadata"]["annotations"]) == ("default", {})


def test_a_model_is_required_by_the_annotation_that_hami_documents() -> None:
    metadata = build_pod(Shape(1, model="A100"), VENDORS, "llm")["metadata"]
    assert (metadata["namespace"], metadata["annotations"]) == ("llm", {"nvidia.com/use-gputype": "A100"})


def test_copies_of_a_shape_have_names_of_their_own() -> None:
    template = build_template(Shape(1), VENDORS)
    assert (template.replicas, template.kind) == (1, "Pod")
    names = {template.build_pod(number, 2)["metadata"]["name"] for number in range(2)}
    assert len(names) == 2


def test_a_file_describes_one_workload() -> None:
    assert read_template(POD, Path("a.yaml"), "llm").pod["metadata"]["namespace"] == "llm"
    with pytest.raises(ManifestError, match="describes 2 workloads, ask about one"):
        read_template(POD + b"---\n" + POD.replace(b"name: a", b"name: b"), Path("a.yaml"))
