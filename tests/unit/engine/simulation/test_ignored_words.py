"""Words of a pod, a workload or a quota that no scheduler reads: which are noted, and which name is the nearest.

Names are those of HAMi's documentation ("User annotations", `--device-config-file`) in the table of its chart.
"""

from pathlib import Path
from typing import Any

import orjson
import pytest

from engine.diagnosis.outcome import FoundObstacle
from engine.fit import device_config
from engine.simulation.admission import AdmittedPod
from engine.simulation.ignored_words import (
    describe_keys,
    describe_misplaced,
    describe_quotas,
    describe_resource,
    describe_values,
    find_excluding_reason,
    find_table_obstacles,
    is_mig_resource,
    list_read_keys,
    list_unknown_resources,
)
from engine.simulation.setting import Note
from engine.simulation.workloads import read_workloads
from schemas.json_types import Json
from tests.support.builders.cluster import a_node
from tests.support.builders.layer_objects import to_english
from tests.support.builders.simulations import a_gpu_node, a_gpu_pod, build_described

VENDORS = device_config.read_shipped()
CLUSTER = build_described(a_gpu_node("n1", 2))
"""GPU-n1-0 and GPU-n1-1, NVIDIA A10."""
EMPTY = build_described(a_node("bare"))
TYPES, UUIDS = "nvidia.com/use-gputype", "nvidia.com/use-gpuuuid"


def annotate(**annotations: str) -> Json:
    """Build a pod with annotations; ``__`` stands for the slash, ``_`` for a hyphen."""
    pod = a_gpu_pod()
    named = {key.replace("__", "/").replace("_", "-"): value for key, value in annotations.items()}
    pod["metadata"] |= {"annotations": named, "namespace": "ml"}
    return pod


def with_annotation(key: str, value: str) -> Json:
    pod = annotate()
    pod["metadata"]["annotations"] = {key: value}
    return pod


def write(notes: Any) -> list[tuple[str, str]]:
    return [(note.code, str(to_english(note.text))) for note in notes]


@pytest.mark.parametrize(
    "key",
    [
        "hami.io/gpu-scheduler-policy", "hami.io/node-scheduler-policy", "hami.io/device-scoring-weights", TYPES, UUIDS,
        "nvidia.com/nouse-gpuuuid", "nvidia.com/vgpu-mode", "nvidia.com/numa-bind", "hygon.com/use-dcutype",
    ],
)  # fmt: skip
def test_annotations_of_the_documentation_are_read(key: str) -> None:
    assert key in list_read_keys(VENDORS)
    assert write(describe_keys(with_annotation(key, "x"), VENDORS)) == []


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("nvidia.com/use-gputypes", TYPES),
        ("nvidia.com/gputype", TYPES),
        # The name without its domain, and the name under another domain that HAMi reads.
        ("use-gpuuuid", "nvidia.com/use-gpuuuid"),
        ("hami.io/gpu-schedule-policy", "hami.io/gpu-scheduler-policy"),
        ("hami.io/vgpu-mode", "nvidia.com/vgpu-mode"),
        # Others' annotations, and what is like none of HAMi's.
        ("example.com/gputype", ""),
        ("nvidia.com/driver", ""),
        ("prometheus.io/scrape", ""),
    ],
)
def test_an_annotation_that_is_almost_one_of_hamis_is_noted_with_it(key: str, nearest: str) -> None:
    notes = write(describe_keys(with_annotation(key, "x"), VENDORS))
    text = f"No scheduler reads the annotation {key}; the nearest that HAMi reads is {nearest}."
    if key == "use-gpuuuid":
        # Several vendors have an annotation of that name: one of them is named.
        assert [code for code, _ in notes] == ["UnknownAnnotation"]
        assert "/use-gpuuuid." in notes[0][1]
    else:
        assert notes == ([("UnknownAnnotation", text)] if nearest else [])


def read_job(of_job: Json, of_pod: Json) -> Any:
    template = {"metadata": {"annotations": of_pod}, "spec": a_gpu_pod()["spec"]}
    job = {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", "annotations": of_job},
        "spec": {"template": template},
    }  # fmt: skip
    return read_workloads(orjson.dumps(job), Path("job.json"))[0]


def test_an_annotation_of_hami_on_the_workload_itself_has_no_effect() -> None:
    notes = write(describe_misplaced(read_job({TYPES: "A10", "team": "a"}, {}), VENDORS))
    assert notes == [
        (
            "AnnotationOnWorkload",
            (
                f"The annotation {TYPES}: A10 stands on Job/train itself and has no effect: HAMi reads it only on the "
                "pod. Move it into spec.template.metadata.annotations."
            ),
        )
    ]
    ((_, text),) = write(describe_misplaced(read_job({TYPES: "A10"}, {TYPES: "H100"}), VENDORS))
    assert text.endswith("on Job/train itself has no effect; that of its template counts.")


@pytest.mark.parametrize(
    ("key", "value", "policies"),
    [
        ("hami.io/gpu-scheduler-policy", "binpack", ""),
        ("hami.io/gpu-scheduler-policy", "spread, topology-aware", ""),
        ("hami.io/gpu-scheduler-policy", "mutex", ""),
        ("hami.io/gpu-scheduler-policy", "pack", "binpack, spread, mutex, topology-aware"),
        ("hami.io/gpu-scheduler-policy", "binpack,pack", "binpack, spread, mutex, topology-aware"),
        # Of nodes there are two policies.
        ("hami.io/node-scheduler-policy", "mutex", "binpack, spread"),
        ("hami.io/node-scheduler-policy", "spread", ""),
        ("hami.io/node-scheduler-policy", "", ""),
    ],
)
def test_a_policy_that_hami_does_not_know_is_noted_with_those_that_there_are(
    key: str, value: str, policies: str
) -> None:
    notes = write(describe_values(with_annotation(key, value), VENDORS, CLUSTER.columns))
    text = f"names a policy that HAMi does not know, and it takes its default; there are {policies}."
    assert notes == ([("UnknownPolicy", f"The annotation {key}: {value} {text}")] if policies else [])


@pytest.mark.parametrize(
    ("key", "value", "codes"),
    [
        (TYPES, "A10", []),
        # HAMi looks for the word in the model, in any case.
        (TYPES, "nvidia a10", []),
        (TYPES, "a1", []),
        (TYPES, "H100", ["UnknownModel"]),
        (TYPES, "A10,H100, H200", ["UnknownModel", "UnknownModel"]),
        ("nvidia.com/nouse-gputype", "H100", ["UnknownModel"]),
        (UUIDS, "GPU-n1-0", []),
        (UUIDS, "GPU-n1-0,GPU-n1-1", []),
        (UUIDS, "GPU-n1-2", ["UnknownUuid"]),
        (UUIDS, "GPU-n1-0,other", ["UnknownUuid"]),
        ("nvidia.com/nouse-gpuuuid", "other", ["UnknownUuid"]),
        ("example.com/use-gpuuuid", "other", []),
    ],
)
def test_values_that_no_device_has_are_noted(key: str, value: str, codes: list[str]) -> None:
    pod = with_annotation(key, value)
    assert [code for code, _ in write(describe_values(pod, VENDORS, CLUSTER.columns))] == codes
    # Without a registered device nothing is known of models and UUIDs.
    assert write(describe_values(pod, VENDORS, EMPTY.columns)) == []


@pytest.mark.parametrize(
    ("uuid", "text"),
    [
        ("GPU-n1-7", f"No device of the cluster has the UUID GPU-n1-7 (annotation {UUIDS}); the nearest is GPU-n1-1."),
        ("zzzz", f"No device of the cluster has the UUID zzzz (annotation {UUIDS})."),
    ],
)
def test_the_nearest_uuid_is_named_where_one_is_near(uuid: str, text: str) -> None:
    assert write(describe_values(with_annotation(UUIDS, uuid), VENDORS, CLUSTER.columns)) == [("UnknownUuid", text)]


def test_the_models_that_there_are_are_named_once_and_the_nearest_first() -> None:
    node = a_gpu_node("n2", 1)
    node["metadata"]["annotations"]["hami.io/node-nvidia-register"] = node["metadata"]["annotations"][
        "hami.io/node-nvidia-register"
    ].replace("NVIDIA A10", "NVIDIA L40S")
    cluster = build_described(a_gpu_node("n1", 2), node)
    assert write(describe_values(with_annotation(TYPES, "NVIDIA L40"), VENDORS, cluster.columns)) == []
    ((_, text),) = write(describe_values(with_annotation(TYPES, "NVIDIA-L40S"), VENDORS, cluster.columns))
    assert text.endswith("there are NVIDIA L40S, NVIDIA A10.")


@pytest.mark.parametrize(
    ("annotations", "reason"),
    [
        ({}, ""),
        ({UUIDS: "GPU-n1-0"}, ""),
        ({UUIDS: "other,GPU-n1-1"}, ""),
        ({UUIDS: "other"}, "CardUuidMismatch"),
        ({TYPES: "a10"}, ""),
        ({TYPES: "H100,A10"}, ""),
        ({TYPES: "H100"}, "CardTypeMismatch"),
        ({"nvidia.com/vgpu-mode": "hami-core"}, ""),
        ({"nvidia.com/vgpu-mode": "mig"}, "CardTypeMismatch"),
        ({UUIDS: "other", TYPES: "H100"}, "CardUuidMismatch"),
        # A list that leaves out devices excludes no pod by itself.
        ({"nvidia.com/nouse-gpuuuid": "GPU-n1-0"}, ""),
        ({UUIDS: " , "}, ""),
    ],
)
def test_the_annotation_that_no_device_suits_excludes_the_pod(annotations: dict[str, str], reason: str) -> None:
    pod = annotate()
    pod["metadata"]["annotations"] = annotations
    assert find_excluding_reason(pod, VENDORS, CLUSTER.columns) == reason
    assert find_excluding_reason(pod, VENDORS, EMPTY.columns) == ""


def a_pod_asking(*resources: str, field: str = "containers", amounts: str = "limits") -> Json:
    pod = annotate()
    pod["spec"][field] = [{"name": "c", "resources": {amounts: dict.fromkeys(resources, "1")}}]
    return pod


@pytest.mark.parametrize("field", ["containers", "initContainers"])
@pytest.mark.parametrize("amounts", ["limits", "requests"])
def test_resources_of_a_vendors_domain_that_the_table_lacks_are_listed(field: str, amounts: str) -> None:
    names = ("nvidia.com/gpumemory", "amd.com/vgpu", "nvidia.com/gpu", "cpu", "example.com/fpga")
    assert list_unknown_resources(a_pod_asking(*names, field=field, amounts=amounts), VENDORS) == [
        "amd.com/vgpu", "nvidia.com/gpumemory",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        ("nvidia.com/mig-1g.5gb", True),
        ("nvidia.com/mig-3g.20gb", True),
        ("nvidia.com/mig-1g.5gb.me", False),
        ("nvidia.com/gpu", False),
        ("mig-1g.5gb", False),
    ],
)
def test_profiles_of_nvidias_own_plugin_are_recognised(resource: str, expected: bool) -> None:
    assert is_mig_resource(resource) is expected


def describe(resource: str, *nodes: Json) -> Note:
    return describe_resource(resource, build_described(*nodes).snapshot, VENDORS)


def a_node_offering(name: str, resource: str, amount: str) -> Json:
    node = a_node(name)
    node["status"]["allocatable"] |= {resource: amount}
    return node


def test_a_mig_profile_is_translated_into_what_hami_takes() -> None:
    note = describe("nvidia.com/mig-3g.20gb", a_gpu_node())
    assert (note.code, to_english(note.text)) == (
        "MigResource",
        (
            "HAMi does not manage nvidia.com/mig-3g.20gb: it cuts MIG instances by itself. Ask for nvidia.com/gpu: 1 "
            "with nvidia.com/gpumem: 20480 instead (annotation nvidia.com/vgpu-mode: mig keeps it to MIG devices)."
        ),
    )


def test_a_resource_of_no_table_is_described_by_the_nodes_that_offer_it() -> None:
    absent = describe("nvidia.com/gpumems", a_node_offering("n1", "nvidia.com/gpumems", "0"))
    assert absent.code == "UnknownResource"
    assert "no node offers it; the nearest name is nvidia.com/gpumem." in str(to_english(absent.text))
    nodes = [a_node_offering(name, "nvidia.com/gpumems", amount) for name, amount in (("n2", "4"), ("n1", "1"))]
    offered = describe("nvidia.com/gpumems", *nodes, a_node("n3"))
    assert "kube-scheduler counts it by what nodes offer (n1, n2), and HAMi" in str(to_english(offered.text))


def a_quota(*entries: str, namespace: str = "ml") -> Json:
    metadata = {"name": "q"} | ({"namespace": namespace} if namespace else {})
    return {"kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": dict.fromkeys(entries, "1")}}


@pytest.mark.parametrize(
    ("entry", "nearest"),
    [
        # HAMi counts limits of memory and cores, Kubernetes requests of every extended resource.
        ("limits.nvidia.com/gpumem", ""),
        ("limits.nvidia.com/gpucores", ""),
        ("requests.nvidia.com/gpu", ""),
        ("requests.nvidia.com/gpumem", ""),
        ("limits.nvidia.com/gpu", "limits.nvidia.com/gpumem"),
        ("limits.nvidia.com/gpumemory", "limits.nvidia.com/gpumem"),
        ("requests.nvidia.com/gpumemory", "limits.nvidia.com/gpumem"),
        ("limits.nvidia.com/cores", "limits.nvidia.com/gpucores"),
        ("limits.example.com/gpu", ""),
        ("nvidia.com/gpu", ""),
        ("limits.cpu", ""),
        ("count/pods", ""),
    ],
)
def test_entries_of_a_quota_that_limit_nothing_are_noted(entry: str, nearest: str) -> None:
    notes = write(describe_quotas([a_quota(entry)], annotate(), VENDORS))
    assert [code for code, _ in notes] == (["QuotaName"] if nearest else [])
    if nearest:
        assert notes[0][1].startswith(f"ResourceQuota ml/q limits nothing by {entry}: ")
        assert f"HAMi counts {nearest} (and limits.nvidia.com/" in notes[0][1]


def test_only_quotas_of_the_pods_namespace_count() -> None:
    pod, wrong = annotate(), "limits.nvidia.com/gpu"
    assert write(describe_quotas([a_quota(wrong, namespace="other")], pod, VENDORS)) == []
    # A quota of a file without a namespace is one of the default namespace.
    assert write(describe_quotas([a_quota(wrong, namespace="")], pod, VENDORS)) == []
    pod["metadata"]["namespace"] = "default"
    assert len(write(describe_quotas([a_quota(wrong, namespace="")], pod, VENDORS))) == 1


def find_obstacles(pod: Json, *nodes: Json, is_hamis: bool = True) -> tuple[FoundObstacle, ...]:
    return find_table_obstacles(build_described(*nodes), pod, AdmittedPod(pod, (), is_hamis=is_hamis))


def test_a_table_that_does_not_fit_the_cluster_is_an_obstacle() -> None:
    renamed = a_gpu_node()
    renamed["status"]["allocatable"].pop("nvidia.com/gpu")
    pod = a_pod_asking("nvidia.com/vgpu", "nvidia.com/vgpumem")
    (obstacle,) = find_obstacles(pod, renamed)
    assert (obstacle.code, obstacle.words["count"]) == ("ResourceNotInTable", 2)
    assert to_english(obstacle.words["resources"]) == "nvidia.com/vgpu, nvidia.com/vgpumem"
    # The nodes offer what the table names: the pod's name is a slip, which is no obstacle of the table.
    assert find_obstacles(pod, a_gpu_node()) == ()
    assert find_obstacles(pod, renamed, is_hamis=False) == ()
    assert find_obstacles(pod, a_node("bare")) == ()
    assert find_obstacles(a_pod_asking("nvidia.com/mig-1g.5gb"), renamed) == ()
    assert find_obstacles(a_pod_asking("nvidia.com/gpu"), renamed) == ()


def test_an_entry_that_is_near_no_name_is_answered_by_the_names_of_its_vendor() -> None:
    entry = f"limits.amd.com/{'x' * 40}"
    ((_, text),) = write(describe_quotas([a_quota(entry)], annotate(), VENDORS))
    assert text.endswith("HAMi counts limits.amd.com/gpumem (and limits.amd.com/gpucores).")
