"""The plan of the chart: which value switches which component of kustomize, and the templates that follow."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, NamedTuple

from deploy.helm_from_kustomize.branches import Expression, add_branches
from deploy.helm_from_kustomize.edits import IS_ONE, fill
from deploy.helm_from_kustomize.manifests import apply_all, read_objects, read_patches
from deploy.helm_from_kustomize.text import write_object

_KUBE_EVENTS: Final = ".Values.sources.kubeEvents"


@dataclass(frozen=True, slots=True)
class Component:
    """A folder of kustomize that adds objects, which are there under the condition."""

    folder: str
    condition: str = ""


COMPONENTS: Final = (
    Component("base"),
    # Kafka and OpenSearch of one node.
    Component("overlays/small", ".Values.stores.enabled"),
    Component("components/kube-events", f"{_KUBE_EVENTS}.enabled"),
    Component("components/kube-events-objects", f"and {_KUBE_EVENTS}.enabled {_KUBE_EVENTS}.objects"),
    Component("components/kube-events-workloads", f"and {_KUBE_EVENTS}.enabled {_KUBE_EVENTS}.workloads"),
    Component("components/hami-log", ".Values.sources.hami.enabled"),
    Component("components/kai-log", ".Values.sources.kai.enabled"),
    Component("components/raw-logs", ".Values.sources.rawLogs.enabled"),
    Component("components/events", ".Values.events.enabled"),
    Component("components/scheduler", ".Values.scheduler.enabled"),
    Component("components/alertmanager", ".Values.alertmanager.enabled"),
    Component("components/notify", ".Values.notify.enabled"),
    Component("components/mcp", ".Values.mcp.enabled"),
    Component("components/dashboards", ".Values.dashboards.enabled"),
    Component("components/networkpolicy", ".Values.networkPolicies.enabled"),
    Component("components/high-availability", ".Values.highAvailability"),
    Component("components/keda", ".Values.keda.enabled"),
    Component("components/strimzi", ".Values.kafka.strimzi.enabled"),
    Component("components/opensearch", ".Values.opensearch.roles.enabled"),
    Component("components/ism", ".Values.opensearch.stateManagement"),
    Component("components/cert-manager", 'eq .Values.api.tls.source "certManager"'),
    Component("components/aggregated-api", ".Values.api.aggregated"),
    Component("components/gateway", ".Values.api.gateway.enabled"),
    Component("components/event-reporters", ".Values.eventReporters.enabled"),
    Component("components/device-annotations", ".Values.deviceAnnotations.enabled"),
    *(
        Component(f"components/diagnosis/{name}", f".Values.diagnosis.{value}")
        for name, value in (
            ("nodes", "nodes"), ("owners", "owners"), ("kueue", "kueue"), ("volcano", "volcano"), ("kai", "kai"),
            ("koordinator", "koordinator"), ("pod-groups", "podGroups"),
        )
    ),
)  # fmt: skip
PATCHING: Final = (
    # The later ones come first where two change one place.
    Component("components/high-availability", ".Values.highAvailability"),
    Component("components/aggregated-api", ".Values.api.aggregated"),
    Component("components/ism", ".Values.opensearch.stateManagement"),
    Component("components/strimzi", ".Values.kafka.strimzi.enabled"),
    Component("components/cert-manager", 'ne .Values.api.tls.source "job"'),
    Component("overlays/spoke", 'eq .Values.processes "sources"'),
    Component("overlays/small", IS_ONE),
)
"""Folders whose patches change objects of others, or delete them, under the condition."""
NOT_IN_CHART: Final = frozenset(
    {
        "components/pods", "components/labels", "components/tls", "components/hami",
        "components/node-port", "components/authenticating-proxy",
    }
)  # fmt: skip
"""Helm makes the namespace and labels of its own, settings and the type of the Service follow from values, and `hami`
patches the manifests of HAMi."""
WRITTEN_BY_HAND: Final = frozenset(
    {"components/prometheus", "components/grafana", "components/ingress", "components/keda-tls"}
)
"""Files that are in the chart as they are, an Ingress of which every field is a value, and KEDA's credentials."""


_HEAD: Final = "{{{{- /* Made by `make generate` from deploy/kustomize/{folder}: change that. */}}}}\n"
_OWN_AUTHORITY: Final = ("Issuer/schedulerlog-self-signed", "Certificate/schedulerlog-ca", "Issuer/schedulerlog")
"""Objects of the authority that cert-manager keeps where no issuer is named."""


def write_templates() -> dict[str, str]:
    """Write the text of every template that follows from manifests, by its name."""
    texts = {}
    for component in COMPONENTS:
        for name, items in _divide(component.folder):
            parts = [_make_template(item, component.condition) for item in items]
            # Neighbours under the same condition share its lines.
            bodies = [
                _guard(guard, "".join(f"---\n{part.text}" for part in same))
                for guard, same in groupby(parts, lambda part: part.conditions)
            ]
            definitions = [part.definition for part in parts]
            texts[f"{name}.yaml"] = "".join([_HEAD.format(folder=component.folder), *definitions, *bodies])
    return texts


def _divide(folder: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Divide the base by process; every other folder is one template."""
    items = [item for item in read_objects(folder) if item["kind"] != "Namespace"]
    if folder == "base":
        ordered = sorted(items, key=_get_process)
        yield from ((process, list(same)) for process, same in groupby(ordered, _get_process))
    elif items:
        name = folder.partition("/")[2].replace("/", "-")
        yield "stores" if folder.startswith("overlays/") else name, items


def _get_process(item: dict[str, Any]) -> str:
    return str(item["metadata"]["labels"]["app.kubernetes.io/component"])


class _Template(NamedTuple):
    """An object, and the conditions under which it is there."""

    conditions: tuple[str, ...]
    definition: str
    text: str


def _make_template(item: dict[str, Any], condition: str) -> _Template:
    conditions = [condition] if condition else []
    tree = deepcopy(item)
    for component in PATCHING:
        patches = read_patches(component.folder)
        if any(not patch.operations and patch.has_target(item) for patch in patches):
            conditions.append(f"not ({component.condition})")
        else:
            tree = add_branches(tree, item, apply_all(item, patches), component.condition)
    if f"{item['kind']}/{item['metadata']['name']}" in _OWN_AUTHORITY:
        conditions.append("not .Values.api.tls.issuer.name")
    filled = fill(item, tree)
    text = _write_job(item, filled) if item["kind"] == "Job" else write_object(filled)
    return _Template(tuple(conditions), _write_definition(item, filled), text)


def _guard(conditions: tuple[str, ...], text: str) -> str:
    if not conditions:
        return text
    joined = conditions[0] if len(conditions) == 1 else f"and {' '.join(f'({part})' for part in conditions)}"
    return f"{{{{- if {joined} }}}}\n{text}{{{{- end }}}}\n"


def _write_job(item: dict[str, Any], tree: Any) -> str:
    """Write a Job whose name ends with a hash of its content: a Job can't be changed, so another one is made."""
    name = item["metadata"]["name"]
    metadata = tree["metadata"] | {
        "name": Expression(f'{name}-{{{{ include "{name}.spec" . | sha256sum | trunc 8 }}}}')
    }
    others = {key: value for key, value in tree.items() if key != "spec"} | {"metadata": metadata}
    return f'{write_object(others)}spec:\n  {{{{- include "{name}.spec" . | nindent 2 }}}}\n'


def _write_definition(item: dict[str, Any], tree: Any) -> str:
    """Write the content of a Job as a template of its own; Helm takes definitions outside of conditions only."""
    if item["kind"] != "Job":
        return ""
    return f'{{{{- define "{item["metadata"]["name"]}.spec" }}}}\n{write_object(tree["spec"])}{{{{- end }}}}\n'
