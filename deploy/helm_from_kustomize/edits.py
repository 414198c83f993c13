"""Places in the manifests that values of the chart fill: each a pattern of ``Kind/name path``, and the change there.

An edit that meets nothing is an error (``list_unused``): somebody has changed the manifests, and has to look here.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, get_args

from deploy.helm_from_kustomize.branches import ABSENT, Branch, Expression, HelmLines, choose, edit
from deploy.helm_from_kustomize.text import write_scalar
from deploy.helm_from_kustomize.value_types import Replicated


@dataclass(frozen=True, slots=True)
class Filling:
    location: str
    change: Callable[[Any], Any]


def _put(node: Any) -> Callable[[Any], Any]:
    return lambda _: node


def _insert(**nodes: Any) -> Callable[[Any], Any]:
    return lambda value: value | nodes


def _print(path: str, function: str = "quote") -> Expression:
    return Expression(f"{{{{ {function} .Values.{path} }}}}")


def _list(words: list[str], path: str, flag: str) -> list[Any]:
    """List a container's arguments: words, and a flag for each of the values."""
    return [
        *words,
        HelmLines(f'{{{{- range .Values.{path} }}}}\n- {{{{ printf "{flag}=%s" . | quote }}}}\n{{{{- end }}}}'),
    ]


def _replace(pattern: str, helm: str) -> Callable[[Any], Any]:
    """Put Helm's text in the place of a part of a text."""

    def change(value: Any) -> Any:
        if not isinstance(value, str) or not re.search(pattern, value):
            return value
        if re.fullmatch(pattern, value):
            return Expression(f"{{{{ quote {helm} }}}}")
        # Quoted as a text of the same form.
        return Expression(write_scalar(re.sub(pattern, "HELM", value)).replace("HELM", f"{{{{ {helm} }}}}"))

    return change


def _print_if_set(key: str, path: str = "") -> HelmLines:
    """Write an entry where the value is not empty."""
    return HelmLines(f"{{{{- with .Values.{path} }}}}\n{key}: {{{{ toJson . }}}}\n{{{{- end }}}}")


IS_ONE: Final = 'eq .Values.processes "one"'
_RELEASE: Final = ".Release.Namespace"
_NAMESPACE: Final = Expression(f"{{{{ {_RELEASE} }}}}")
_POD: Final = r"spec\.(?:jobTemplate\.spec\.)?template"
_OURS: Final = r"(?:Deployment|StatefulSet|Job|CronJob)/schedulerlog-\S+"
_STORE: Final = r"StatefulSet/(?:kafka|opensearch)"
_HAMI: Final = ".Values.sources.hami"
_KAI: Final = ".Values.sources.kai"
_SECRETS: Final = {
    "schedulerlog-kafka": "kafka.existingSecret",
    "schedulerlog-opensearch": "opensearch.existingSecret",
    "schedulerlog-opensearch-administrator": "opensearch.roles.administratorSecret",
    "schedulerlog-opensearch-writer": "opensearch.roles.writerSecret",
    "schedulerlog-opensearch-reader": "opensearch.roles.readerSecret",
    "schedulerlog-opensearch-provisioner": "opensearch.roles.provisionerSecret",
    "schedulerlog-dashboards": "dashboards.existingSecret",
}
_PULL_SECRETS: Final = HelmLines(
    "{{- with .Values.image.pullSecrets }}\nimagePullSecrets:\n"
    "  {{- range . }}\n  - name: {{ . }}\n  {{- end }}\n{{- end }}"
)
_IN_ONE_PROCESS: Final = [
    "all",
    Branch("not .Values.sources.kubeEvents.enabled", "--without=kube-events", ABSENT),
    Branch("not .Values.events.enabled", "--without=events", ABSENT),
    Branch("not .Values.notify.enabled", "--without=notify", ABSENT),
    # The default of the command is that of the value.
    HelmLines(
        '{{- if ne (join "," .Values.events.schedulers) "schedulerlog" }}\n{{- range .Values.events.schedulers }}\n'
        '- {{ printf "--events-of=%s" . | quote }}\n{{- end }}\n{{- end }}'
    ),
]

EDITS: Final = (
    # Namespaces: of the release, and of others in which a log is read.
    Filling(r"Role(?:Binding)?/schedulerlog-hami-log metadata\.namespace", _put(_print("sources.hami.namespace"))),
    Filling(r"Role(?:Binding)?/schedulerlog-kai-log metadata\.namespace", _put(_print("sources.kai.namespace"))),
    Filling(
        r".* (?:metadata|subjects\.\d+|spec\.service)\.namespace",
        lambda value: _NAMESPACE if value == "schedulerlog" else value,
    ),
    Filling(r"APIService/\S+ metadata\.annotations\..*", _replace(r"^schedulerlog(?=/)", _RELEASE)),
    Filling(r"Certificate/schedulerlog-api spec\.dnsNames\.\d", _replace(r"(?<=api\.)schedulerlog", _RELEASE)),
    Filling(r"Validating\S+ spec\.variables\.\d+\.expression", _replace(r"(?<= \+ ')schedulerlog(?='$)", _RELEASE)),
    # Every object, every pod.
    Filling(r".* metadata\.labels", _insert(helm=HelmLines('{{- include "schedulerlog.labels" . | nindent 4 }}'))),
    Filling(rf"{_OURS} {_POD}\.spec\.containers\.0\.image", _put(Expression('{{ include "schedulerlog.image" . }}'))),
    Filling(
        rf"{_OURS} {_POD}\.spec\.containers\.0", _insert(policy=_print_if_set("imagePullPolicy", "image.pullPolicy"))
    ),
    Filling(
        rf"(?:{_OURS}|{_STORE}) {_POD}\.spec",
        _insert(
            selector=_print_if_set("nodeSelector", "pods.nodeSelector"),
            tolerated=_print_if_set("tolerations", "pods.tolerations"),
        ),
    ),
    Filling(r"ServiceAccount/\S+ ", _insert(secrets=_PULL_SECRETS)),
    Filling(
        r".*\.(?:secret|secretKeyRef)\.(?:name|secretName)",
        lambda value: _print(_SECRETS[value]) if isinstance(value, str) and value in _SECRETS else value,
    ),
    Filling(r".*", _replace("schedulerlog-api-tls", ".Values.api.tls.secret")),
    # The API.
    Filling(
        r"Deployment/schedulerlog-api .*\.args",
        lambda value: Branch(value.condition, _IN_ONE_PROCESS, value.otherwise) if isinstance(value, Branch) else value,
    ),
    Filling(
        r"Service/schedulerlog-api metadata", _insert(annotated=_print_if_set("annotations", "api.service.annotations"))
    ),
    Filling(r"Service/schedulerlog-api spec\.type", _put(_print("api.service.type"))),
    Filling(
        r"Service/schedulerlog-api spec\.ports\.0",
        _insert(
            node=HelmLines(
                '{{- if and (eq .Values.api.service.type "NodePort") .Values.api.service.nodePort }}\n'
                "nodePort: {{ int .Values.api.service.nodePort }}\n{{- end }}"
            )
        ),
    ),
    Filling(
        r"HTTPRoute/\S+ spec\.parentRefs\.0",
        _put({"name": _print("api.gateway.name"), "": _print_if_set("namespace", "api.gateway.namespace")}),
    ),
    Filling(r"HTTPRoute/\S+ spec\.hostnames\.0", _put(_print("api.gateway.host"))),
    Filling(
        r"Certificate/schedulerlog-api spec\.issuerRef",
        _put(
            Branch(
                ".Values.api.tls.issuer.name",
                {"name": _print("api.tls.issuer.name"), "kind": _print("api.tls.issuer.kind")},
                {"name": "schedulerlog", "kind": "Issuer"},
            )
        ),
    ),
    # Sources, events, alerts, dashboards.
    Filling(
        r"Deployment/schedulerlog-hami-log .*\.args\.2",
        _put(Expression(f'{{{{ printf "--pod=%s/%s/%s" {_HAMI}.namespace {_HAMI}.pods {_HAMI}.container | quote }}}}')),
    ),
    Filling(
        r"Deployment/schedulerlog-kai-log .*\.args\.2",
        _put(Expression(f'{{{{ printf "--pod=%s/%s" {_KAI}.namespace {_KAI}.pods | quote }}}}')),
    ),
    Filling(
        r"Deployment/schedulerlog-events .*\.args", lambda value: _list(value[:2], "events.schedulers", "--scheduler")
    ),
    Filling(
        r"Deployment/schedulerlog-alertmanager .*\.args", lambda value: _list(value[:2], "alertmanager.urls", "--url")
    ),
    Filling(
        r"Deployment/schedulerlog-notify .*\.args\.\d", _replace(r"(?<=--page-url=).*", ".Values.dashboards.apiUrl")
    ),
    Filling(
        r"Deployment/schedulerlog-api .*\.env\.\d\.value",
        _replace(r"https://schedulerlog\.example:31994", ".Values.dashboards.apiUrl"),
    ),
    Filling(r"Job/schedulerlog-dashboards .*\.args\.\d", _replace(r"(?<=--url=).*", ".Values.dashboards.url")),
    Filling(r"Job/schedulerlog-dashboards .*\.args\.\d", _replace(r"(?<=--api-url=).*", ".Values.dashboards.apiUrl")),
    # The scheduler.
    Filling(
        r"StatefulSet/schedulerlog-scheduler .*\.args\.\d+",
        _replace(r"(?<=--node-label-selector=).*", ".Values.scheduler.nodeLabelSelector"),
    ),
    Filling(
        r"StatefulSet/schedulerlog-scheduler .*\.containers\.1\.image",
        _put(Expression('{{ include "schedulerlog.kubeSchedulerImage" . }}')),
    ),
    Filling(r"StatefulSet/schedulerlog-scheduler .*\.requests\.storage", _put(_print("scheduler.spool"))),
    Filling(
        r"StatefulSet/schedulerlog-scheduler spec\.volumeClaimTemplates\.0\.spec",
        _insert(storage=_print_if_set("storageClassName", "scheduler.storageClass")),
    ),
    # Kafka and OpenSearch.
    Filling(r".*\.secret\.name", _replace(r"^kafka(?=-cluster-ca-cert$)", ".Values.kafka.strimzi.cluster")),
    Filling(r"Kafka(?:Topic|User)/\S+ metadata\.labels\.strimzi\.io/cluster", _put(_print("kafka.strimzi.cluster"))),
    Filling(r"ScaledObject/\S+ spec\.maxReplicaCount", _put(_print("keda.maxReplicas", "int"))),
    Filling(
        r"ScaledObject/\S+ spec\.triggers\.0\.metadata",
        _insert(
            protocol=HelmLines(
                '{{- if hasSuffix "ssl" (include "schedulerlog.kafkaProtocol" .) }}\ntls: enable\n{{- end }}\n'
                '{{- if hasPrefix "sasl" (include "schedulerlog.kafkaProtocol" .) }}\n'
                'sasl: {{ include "schedulerlog.kedaMechanism" . }}\n{{- end }}'
            )
        ),
    ),
    *(
        Filling(
            rf"ScaledObject/{name} spec\.triggers\.0",
            _insert(
                credentials=HelmLines(
                    '{{- if ne (include "schedulerlog.kafkaProtocol" .) "plaintext" }}\nauthenticationRef: '
                    f'{{name: {{{{ ternary "{name}" "schedulerlog-kafka" .Values.kafka.strimzi.enabled }}}}}}\n'
                    "{{- end }}"
                )
            ),
        )
        for name in ("schedulerlog-worker", "schedulerlog-index")
    ),
    *(
        change
        for name in ("kafka", "opensearch")
        for change in (
            Filling(rf"StatefulSet/{name} .*\.image", _put(_print(f"stores.{name}.image"))),
            Filling(rf"StatefulSet/{name} .*\.requests\.storage", _put(_print(f"stores.{name}.storage"))),
            Filling(
                rf"StatefulSet/{name} spec\.volumeClaimTemplates\.0\.spec",
                _insert(storage=_print_if_set("storageClassName", f"stores.{name}.storageClass")),
            ),
            Filling(
                rf"StatefulSet/{name} {_POD}\.spec",
                _insert(secrets=_PULL_SECRETS),
            ),
        )
    ),
    # Network policies.
    Filling(
        r"NetworkPolicy/schedulerlog-metrics spec\.ingress\.0\.from",
        _put(_print("networkPolicies.prometheus", "toJson")),
    ),
    Filling(r"NetworkPolicy/schedulerlog-kafka spec\.egress\.0\.to", _put(_print("networkPolicies.kafka", "toJson"))),
    Filling(
        r"NetworkPolicy/schedulerlog-opensearch spec\.egress\.0\.to",
        _put(_print("networkPolicies.opensearch", "toJson")),
    ),
    Filling(
        r"NetworkPolicy/schedulerlog-opensearch spec\.egress\.0\.ports\.0\.port",
        _put(_print("networkPolicies.opensearchPort", "int")),
    ),
)
_used: Final[set[str]] = set()


def fill(item: dict[str, Any], tree: Any) -> Any:
    """Fill the places of an object with values; ``item`` is the object as the manifests have it."""
    edits = [*EDITS, *_list_process_edits(item)]
    identity = f"{item['kind']}/{item['metadata']['name']}"

    def change(path: str, value: Any) -> Any:
        location = f"{identity} {path}"
        for candidate in edits:
            if _compile(candidate.location).fullmatch(location):
                changed = candidate.change(value)
                if changed is not value:
                    _used.add(candidate.location)
                value = changed
        return value

    return edit(tree, change)


def list_unused() -> list[str]:
    """List the places of edits that have changed nothing."""
    return [candidate.location for candidate in EDITS if candidate.location not in _used]


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.DOTALL)


def _list_process_edits(item: dict[str, Any]) -> Iterator[Filling]:
    """List the edits of a workload of ours: a sum of its settings, its resources and its number of pods."""
    spec = item.get("spec") or {}
    pod = spec.get("jobTemplate", {}).get("spec", spec).get("template") or {}
    if not item["metadata"]["name"].startswith("schedulerlog-") or "spec" not in pod:
        return
    first = pod["spec"]["containers"][0]
    words = " ".join(word for word in first["args"] if not word.startswith("-"))
    sources = [variable["valueFrom"] for variable in first.get("env", ()) if "valueFrom" in variable]
    keys = [source["configMapKeyRef"]["key"] for source in sources if "configMapKeyRef" in source]
    command = f'(ternary "all" "{words}" (eq .Values.processes "one"))' if words == "api serve" else f'"{words}"'
    parts = ["list .", command, *(f'"{key}"' for key in keys)]
    yield Filling(
        rf".* {_POD}\.metadata",
        _insert(annotations=Expression(f'{{{{ include "schedulerlog.podAnnotations" ({" ".join(parts)}) }}}}')),
    )
    for number, container in enumerate(pod["spec"]["containers"]):
        yield Filling(rf".* {_POD}\.spec\.containers\.{number}\.resources", _assign_resources(container["name"]))
    name = item["metadata"]["name"].removeprefix("schedulerlog-")
    if name in get_args(Replicated):
        yield Filling(r".* spec\.replicas", _count(name))


def _assign_resources(process: str) -> Callable[[Any], Any]:
    def write(name: str, medium: Any) -> Expression:
        return Expression(f'{{{{ include "schedulerlog.resources" (list . "{name}" `{json.dumps(medium)}`) }}}}')

    def change(value: Any) -> Any:
        in_one, alone = (choose(value, holds=holds) for holds in (True, False))
        return write(process, alone) if in_one == alone else Branch(IS_ONE, write("all", in_one), write(process, alone))

    return change


def _count(process: str) -> Callable[[Any], Any]:
    def change(value: Branch | int) -> HelmLines:
        if isinstance(value, int):
            chosen = f'get .Values.replicas "{process}"'
            return HelmLines(f'replicas: {{{{ ternary ({chosen}) {value} (hasKey .Values.replicas "{process}") }}}}')
        call = f'include "schedulerlog.replicas" (list . "{process}" {value.then})'
        return HelmLines(f"{{{{- with {call} }}}}\nreplicas: {{{{ . }}}}\n{{{{- end }}}}")

    return change
