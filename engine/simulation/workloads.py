"""Pods of a file: a Pod, or the template of a Job, CronJob, Deployment, StatefulSet, DaemonSet, ReplicaSet and others.

One or many documents, each an object or a List. Kinds that make no pods (a Service next to a Deployment) are passed
over.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from engine.fit.manifests import ManifestError, check_pod, derive_uid
from runtime.files import yaml_lines
from runtime.files.yaml_lines import YamlError, parse_documents
from schemas.json_types import Json

MAX_PODS: Final = 1_000
"""Limit of the pods that are placed one after the other."""
_TEMPLATES: Final[Mapping[str, tuple[str, ...]]] = {
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
    "PodTemplate": ("template",),
}
_DEFAULT_TEMPLATE: Final = ("spec", "template")
_VOLCANO: Final = "volcano"
_DAEMON_KEYS: Final = ("not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
"""Taints ``node.kubernetes.io/…`` that the controller of DaemonSets lets its pods tolerate."""
_HAMI_PREFIX: Final = "hami.io/"
_WRITTEN: Final = ("devices-to-allocate", "devices-allocated", "vgpu-node", "vgpu-time", "bind-phase", "bind-time")
"""Ends of the annotations that HAMi's scheduler and plugins write on a pod."""


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """An object that makes pods, and the pod that it makes."""

    kind: str
    name: str
    pod: Json
    replicas: int
    """Number of pods that it makes; 1 of a Pod."""
    annotations: Mapping[str, Any]
    """Annotations of the workload itself; none of a Pod, whose annotations are the pod's."""
    node: str = ""
    """Node on which the pod is now; it is judged as if it were made again."""
    gang: str = ""
    """Name of the gang that the workload itself declares, as a Job of Volcano does."""
    gang_minimum: int = 0
    """Number of pods of that gang that start only together."""

    def build_pod(self, index: int, total: int) -> Json:
        """Build the pod with this index; of several pods each has a name and a UID of its own."""
        metadata = self.pod["metadata"]
        if total == 1 and self.kind == "Pod":
            return self.pod
        name = f"{metadata['name']}-{index}"
        # Another pod than any of the cluster, whatever UID the file names.
        uid = derive_uid(metadata["namespace"], f"{self.kind}/{name}")
        return {**self.pod, "metadata": {**metadata, "name": name, "uid": uid}}


def read_workloads(text: bytes, path: Path, namespace: str = "default") -> list[PodTemplate]:
    """Read the workloads of a file, at least one.

    namespace: of objects that name none. Raises `ManifestError`.
    """
    counts = {"all": 0}
    try:
        objects = [(line, item) for line, document in parse_documents(text) for item in _flatten(document, line)]
        workloads = [workload for line, item in objects for workload in _read_workloads(item, line, namespace, counts)]
    except YamlError as error:
        raise ManifestError(path, error.line, error.problem) from None
    if not workloads:
        raise ManifestError(path, None, _explain_absence(counts["all"]))
    if len(workloads) > 1 and all(workload.node for workload in workloads):
        problem = f"describes {len(workloads)} pods, all of them on nodes; write pods that wait for a node"
        raise ManifestError(path, None, problem)
    return workloads


def _explain_absence(count: int) -> str:
    kinds = "kind Pod, Job, CronJob, Deployment, StatefulSet, DaemonSet or ReplicaSet"
    return f"describes 0 pods in {count} {'object' if count == 1 else 'objects'}, write an object of {kinds}"


def _flatten(document: Any, line: int) -> Iterator[yaml_lines.Mapping]:
    if document is None:
        return
    if not isinstance(document, yaml_lines.Mapping):
        raise YamlError(line, "is no Kubernetes object, write apiVersion, kind, metadata and spec")
    kind, items = document.get("kind"), document.get("items")
    if not isinstance(kind, str):
        raise YamlError(document.get_line("kind"), "has no kind, write kind: Pod or the kind of a workload")
    if kind.endswith("List") and isinstance(items, list):
        for item in items:
            yield from _flatten(item, document.get_line("items"))
        return
    yield document


def _read_workloads(
    item: yaml_lines.Mapping, line: int, namespace: str, counts: dict[str, int]
) -> Iterator[PodTemplate]:
    counts["all"] += 1
    kind = item["kind"]
    if kind == "Pod":
        yield _read_pod(item, namespace)
        return
    if tasks := _list_tasks(item):
        yield from _read_tasks(item, tasks, _read_owner(item, line), namespace)
        return
    template = _find_template(item)
    if template is not None:
        yield _read_template(item, template, _read_owner(item, line), namespace)


def _read_owner(item: yaml_lines.Mapping, line: int) -> yaml_lines.Mapping:
    """Read the metadata of an object that makes pods, which are named after it."""
    metadata = item.get("metadata")
    owner = metadata if isinstance(metadata, yaml_lines.Mapping) else yaml_lines.Mapping(line)
    if not isinstance(owner.get("name"), str) or not owner["name"]:
        raise YamlError(owner.line, f"the {item['kind']} has no metadata.name, write name: under metadata")
    return owner


def _list_tasks(item: yaml_lines.Mapping) -> list[yaml_lines.Mapping]:
    """List the tasks of a Job of Volcano, each with a template of its own; none of another object."""
    spec = item.get("spec")
    tasks = spec.get("tasks") if isinstance(spec, Mapping) and item["kind"] == "Job" else None
    return [task for task in tasks if isinstance(task, yaml_lines.Mapping)] if isinstance(tasks, list) else []


def _read_tasks(
    job: yaml_lines.Mapping, tasks: list[yaml_lines.Mapping], owner: yaml_lines.Mapping, namespace: str
) -> Iterator[PodTemplate]:
    """Read the pods of Volcano's Job, which start only when `minAvailable` of them have nodes."""
    replicas = [_read_count(task, "replicas") for task in tasks]
    minimum = _read_count(job["spec"], "minAvailable", sum(replicas))
    for index, (task, number) in enumerate(zip(tasks, replicas, strict=True)):
        template = task.get("template")
        if not isinstance(template, yaml_lines.Mapping) or not isinstance(template.get("spec"), yaml_lines.Mapping):
            raise YamlError(task.line, f"task {index} of Job {owner['name']} has no template, write template.spec")
        name = task.get("name") if isinstance(task.get("name"), str) else str(index)
        template["spec"].setdefault("schedulerName", job["spec"].get("schedulerName") or _VOLCANO)
        pod = _make_pod(template, owner, namespace)
        pod["metadata"]["name"] = f"{owner['name']}-{name}"
        check_pod(pod)
        yield PodTemplate("Job", owner["name"], to_plain(pod), number, {}, gang=owner["name"], gang_minimum=minimum)


def _read_template(
    item: yaml_lines.Mapping, template: yaml_lines.Mapping, owner: yaml_lines.Mapping, namespace: str
) -> PodTemplate:
    kind = item["kind"]
    pod = _make_pod(template, owner, namespace)
    if kind == "DaemonSet":
        _add_daemon_tolerations(pod)
    check_pod(pod)
    annotations = owner.get("annotations")
    return PodTemplate(
        kind,
        owner["name"],
        to_plain(pod),
        _count_replicas(kind, item),
        annotations if isinstance(annotations, Mapping) else {},
    )


def _find_template(item: yaml_lines.Mapping) -> yaml_lines.Mapping | None:
    """Find the pod template of an object; also of a kind that is not known, if it stands where most have it."""
    value: Any = item
    for key in _TEMPLATES.get(item["kind"], _DEFAULT_TEMPLATE):
        value = value.get(key) if isinstance(value, yaml_lines.Mapping) else None
    spec = value.get("spec") if isinstance(value, yaml_lines.Mapping) else None
    return value if isinstance(spec, yaml_lines.Mapping) and "containers" in spec else None


def _make_pod(template: yaml_lines.Mapping, owner: Mapping[str, Any], namespace: str) -> yaml_lines.Mapping:
    pod = yaml_lines.Mapping(template.line)
    pod.lines = dict(template.lines)
    pod |= {"apiVersion": "v1", "kind": "Pod", **template}
    metadata = template.get("metadata")
    named = yaml_lines.Mapping(metadata.line if isinstance(metadata, yaml_lines.Mapping) else template.line)
    if isinstance(metadata, yaml_lines.Mapping):
        named |= metadata
        named.lines = dict(metadata.lines)
    named |= {"name": owner["name"], "namespace": owner.get("namespace") or namespace}
    pod["metadata"] = named
    return pod


def _read_pod(pod: yaml_lines.Mapping, namespace: str) -> PodTemplate:
    metadata = pod.get("metadata")
    if isinstance(metadata, yaml_lines.Mapping) and not metadata.get("namespace"):
        metadata["namespace"] = namespace
    check_pod(pod)
    plain = to_plain(pod)
    # The API server takes a null for an absent spec, and then finds that it has no containers.
    plain["spec"] = plain.get("spec") or {}
    node = plain["spec"].get("nodeName") or ""
    is_observed = isinstance(plain.get("status"), dict) and bool(plain["status"].get("phase"))
    if not (node and is_observed):
        return PodTemplate("Pod", plain["metadata"]["name"], plain, 1, {})
    # As it was written: a node that a scheduler has chosen is no wish of its owner.
    spec = {key: value for key, value in plain["spec"].items() if key != "nodeName"}
    metadata_before = {**plain["metadata"], "annotations": select_owners(plain["metadata"].get("annotations") or {})}
    before = {key: value for key, value in plain.items() if key != "status"} | {
        "metadata": metadata_before,
        "spec": spec,
    }
    return PodTemplate("Pod", metadata_before["name"], before, 1, {}, node)


def select_owners(annotations: Mapping[str, Any]) -> Json:
    """Select the annotations of a pod that its owner wrote: HAMi's scheduler and plugins write further ones."""
    return {
        key: value
        for key, value in annotations.items()
        if not (key.startswith(_HAMI_PREFIX) and key.endswith(_WRITTEN))
    }


def _add_daemon_tolerations(pod: yaml_lines.Mapping) -> None:
    spec = pod["spec"]
    listed = spec.get("tolerations")
    added = [{"key": f"node.kubernetes.io/{key}", "operator": "Exists"} for key in _DAEMON_KEYS]
    spec["tolerations"] = [*(listed if isinstance(listed, list) else []), *added]


def _count_replicas(kind: str, item: Mapping[str, Any]) -> int:
    spec = item.get("spec")
    fields = {"Job": "parallelism", "CronJob": "", "DaemonSet": ""}
    return _read_count(spec, fields.get(kind, "replicas")) if isinstance(spec, Mapping) else 1


def _read_count(fields: Mapping[str, Any], name: str, default: int = 1) -> int:
    value = fields.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else default


def to_plain(value: Any) -> Any:
    """Copy a value that was read with its lines into plain mappings and lists."""
    if isinstance(value, Mapping):
        return {key: to_plain(entry) for key, entry in value.items()}
    return [to_plain(entry) for entry in value] if isinstance(value, list) else value
