"""Webhooks that were not called for a pod: which of their rules and selectors left it out.

Selectors and rules are those of Kubernetes' documentation: "Labels and Selectors" (NotIn and DoesNotExist also match
without the label) and "Dynamic Admission Control".
"""

from datetime import UTC, datetime
from typing import Any

import pytest

from engine.diagnosis.facts import DiagnosisFacts, Evidence, PodOnCluster
from engine.diagnosis.layers.webhooks import OF_HAMI, OF_KUEUE, check_kueue_webhook, explain_missing_call
from engine.snapshot.case_objects import collect_objects
from schemas.json_types import Json

NOW = datetime(2026, 11, 24, 8, 30, tzinfo=UTC)
CREATED = datetime(2026, 11, 24, 8, 0, tzinfo=UTC)
NAMESPACE: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab", "labels": {"team": "vision"}}}
SELECTS = (
    "the webhook vgpu.hami.io selects the pod, and its failurePolicy is Ignore: its service kube-system/hami did not "
    "answer when the pod was made, or passed it over"
)
ABSENT = "the cluster has no webhook of HAMi for pods"


def a_rule(operations: tuple[str, ...] = ("CREATE",), resources: tuple[str, ...] = ("pods",)) -> Json:
    return {"operations": list(operations), "resources": list(resources), "apiGroups": [""], "apiVersions": ["v1"]}


def a_hook(name: str = "vgpu.hami.io", **more: Any) -> Json:
    """A hook that selects every new pod, and whose failure nobody sees."""
    service = {"namespace": "kube-system", "name": "hami"}
    plain = {"rules": [a_rule()], "failurePolicy": "Ignore", "clientConfig": {"service": service}}
    return {"name": name, **plain, **more}


def a_configuration(*hooks: Json, name: str = "hami-webhook", created: str = "2026-11-24T07:00:00Z") -> Json:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name, "creationTimestamp": created}, "webhooks": list(hooks),
    }  # fmt: skip


def build_facts(*objects: Json, **pod: Any) -> DiagnosisFacts:
    described = PodOnCluster(Evidence("pod", "lab/job-0"), created_at=CREATED)._replace(**pod)
    return DiagnosisFacts("default", "lab", "job-0", NOW, pod=described, objects=collect_objects(objects))


def explain(*objects: Json, **pod: Any) -> str:
    """Explain HAMi's missing call in English; empty where the objects do not say."""
    text = explain_missing_call(build_facts(*objects, **pod), OF_HAMI, "HAMi")
    return text.en if text else ""


@pytest.mark.parametrize(
    ("rules", "text"),
    [
        ([a_rule()], SELECTS),
        ([a_rule(("*",))], SELECTS),
        ([a_rule(resources=("*",))], SELECTS),
        ([a_rule(resources=("*/*",))], SELECTS),
        ([a_rule(("UPDATE", "CREATE"), ("jobs", "pods"))], SELECTS),
        # One of several rules is enough.
        ([a_rule(("UPDATE",)), a_rule()], SELECTS),
        ([a_rule(), a_rule(resources=("jobs",))], SELECTS),
        ([a_rule(("UPDATE",))], ABSENT),
        ([a_rule(resources=("pods/exec", "jobs"))], ABSENT),
        # Rules of two kinds do not add up to one.
        ([a_rule(("UPDATE",)), a_rule(resources=("jobs",))], ABSENT),
        ([a_rule((), ("pods",))], ABSENT),
        ([a_rule(resources=())], ABSENT),
        ([{}], ABSENT),
        ([], ABSENT),
    ],
)
def test_only_a_webhook_with_a_rule_for_new_pods_could_have_been_called(rules: list[Json], text: str) -> None:
    assert explain(NAMESPACE, a_configuration(a_hook(rules=rules))) == text


@pytest.mark.parametrize(
    ("names", "system", "configuration", "hook", "text"),
    [
        # HAMi's hook has a name of its own, whatever its release is called.
        (OF_HAMI, "HAMi", "release-7", "vgpu.hami.io", "the webhook vgpu.hami.io selects the pod"),
        (OF_HAMI, "HAMi", "hami-webhook", "mpod.kb.io", ABSENT),
        # Kubebuilder gives the hooks of all controllers the same names.
        (OF_KUEUE, "Kueue", "Kueue-mutating", "mpod.kb.io", "the webhook mpod.kb.io selects the pod"),
        (OF_KUEUE, "Kueue", "jobset-mutating", "mpod.kb.io", "Kueue has no webhook for pods here"),
        (OF_KUEUE, "Kueue", "kueue-mutating", "mjob.kb.io", "Kueue has no webhook for pods here"),
    ],
)
def test_a_webhook_is_a_systems_by_its_name(
    names: tuple[str, ...], system: str, configuration: str, hook: str, text: str
) -> None:
    facts = build_facts(NAMESPACE, a_configuration(a_hook(hook), name=configuration))
    explanation = explain_missing_call(facts, names, system)
    assert explanation
    assert explanation.en.startswith(text)


def an_expression(operator: str, *values: str, key: str = "use") -> Json:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


SELECTORS = [
    ({}, {}, ""),
    ({"matchLabels": {"use": "gpu"}}, {"use": "gpu", "other": "x"}, ""),
    ({"matchLabels": {"use": "gpu"}}, {"use": "cpu"}, "use=gpu"),
    ({"matchLabels": {"use": "gpu"}}, {}, "use=gpu"),
    ({"matchLabels": {"a": "1", "b": "2"}}, {"a": "1"}, "b=2"),
    (an_expression("In", "gpu", "npu"), {"use": "npu"}, ""),
    (an_expression("In", "gpu", "npu"), {"use": "cpu"}, "use in (gpu, npu)"),
    (an_expression("In", "gpu", "npu"), {}, "use in (gpu, npu)"),
    (an_expression("NotIn", "ignore"), {"use": "gpu"}, ""),
    (an_expression("NotIn", "ignore"), {"use": "ignore"}, "use=ignore"),
    (an_expression("NotIn", "ignore"), {}, ""),
    (an_expression("Exists"), {"use": ""}, ""),
    (an_expression("Exists"), {}, "use"),
    (an_expression("DoesNotExist"), {}, ""),
    (an_expression("DoesNotExist"), {"use": "gpu"}, "use=gpu"),
    # All parts have to be met.
    ({"matchLabels": {"a": "1"}} | an_expression("Exists"), {"a": "1"}, "use"),
    ({"matchLabels": {"a": "1"}} | an_expression("Exists"), {"use": "x"}, "a=1"),
]


@pytest.mark.parametrize(("selector", "labels", "mismatch"), SELECTORS)
def test_the_label_that_a_selector_misses_on_the_pod_is_named(
    selector: Json, labels: dict[str, str], mismatch: str
) -> None:
    expected = f"the webhook vgpu.hami.io leaves out the pod ({mismatch})" if mismatch else SELECTS
    assert explain(NAMESPACE, a_configuration(a_hook(objectSelector=selector)), labels=labels) == expected


@pytest.mark.parametrize(("selector", "labels", "mismatch"), SELECTORS)
def test_the_label_that_a_selector_misses_on_the_namespace_is_named(
    selector: Json, labels: dict[str, str], mismatch: str
) -> None:
    namespace = {**NAMESPACE, "metadata": {"name": "lab", "labels": labels}}
    expected = f"the webhook vgpu.hami.io leaves out namespace lab ({mismatch})" if mismatch else SELECTS
    assert explain(namespace, a_configuration(a_hook(namespaceSelector=selector))) == expected


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        # Kubernetes gives every namespace the label of its name: it is known without the namespace's object.
        (
            an_expression("NotIn", "kube-system", "lab", key="kubernetes.io/metadata.name"),
            "the webhook vgpu.hami.io leaves out namespace lab (kubernetes.io/metadata.name=lab)",
        ),
        (
            {"matchLabels": {"kubernetes.io/metadata.name": "prod"}},
            "the webhook vgpu.hami.io leaves out namespace lab (kubernetes.io/metadata.name=prod)",
        ),
        # Of its other labels nothing is known, so whether the webhook selects it stays open.
        ({"matchLabels": {"team": "speech"}}, ""),
        ({}, ""),
    ],
)
def test_of_a_namespace_that_was_not_read_only_the_name_is_known(selector: Json, text: str) -> None:
    assert explain(a_configuration(a_hook(namespaceSelector=selector))) == text


def test_the_namespace_is_named_before_the_pod() -> None:
    hook = a_hook(namespaceSelector={"matchLabels": {"a": "1"}}, objectSelector={"matchLabels": {"b": "2"}})
    assert "leaves out namespace lab (a=1)" in explain(NAMESPACE, a_configuration(hook))


@pytest.mark.parametrize(
    ("created", "pod_created", "is_younger"),
    [
        ("2026-11-24T08:00:01Z", CREATED, True),
        ("2026-11-24T08:00:00Z", CREATED, False),
        ("2026-11-24T07:59:59Z", CREATED, False),
        ("2026-11-24T08:00:01Z", None, False),
        ("", CREATED, False),
    ],
)
def test_a_pod_that_is_older_than_the_webhook_was_made_without_it(
    created: str, pod_created: datetime | None, is_younger: bool
) -> None:
    younger = "the pod is older than the webhook vgpu.hami.io, which was made at 2026-11-24 08:00:01 UTC"
    configuration = a_configuration(a_hook(), created=created)
    assert explain(NAMESPACE, configuration, created_at=pod_created) == (younger if is_younger else SELECTS)


@pytest.mark.parametrize(
    ("hook", "text"),
    [
        # A failure of a webhook with the policy Fail is seen: the pod is refused.
        (a_hook(failurePolicy="Fail"), ""),
        (a_hook(clientConfig={"url": "https://hami.example.org"}), SELECTS.replace("kube-system/hami", "?")),
        (
            a_hook(matchConditions=[{"name": "gpus-only", "expression": "true"}, {"name": "no-system"}]),
            (
                f"{SELECTS}; its matchConditions (gpus-only, no-system) were not evaluated, and may leave the pod out "
                "as well"
            ),
        ),
        (
            a_hook(failurePolicy="Fail", matchConditions=[{"name": "gpus-only"}]),
            (
                "the webhook vgpu.hami.io has matchConditions (gpus-only), which were not evaluated: they may leave "
                "the pod out"
            ),
        ),
    ],
)
def test_a_webhook_that_selects_the_pod_may_fail_unseen_or_have_conditions(hook: Json, text: str) -> None:
    assert explain(NAMESPACE, a_configuration(hook)) == text


def test_one_webhook_that_selects_the_pod_counts_more_than_those_that_leave_it_out() -> None:
    first, second = (a_hook(objectSelector={"matchLabels": {"use": use}}) for use in ("gpu", "npu"))
    both = "leaves out the pod (use=gpu)"
    assert both in explain(NAMESPACE, a_configuration(first), a_configuration(second, name="other"))
    assert explain(NAMESPACE, a_configuration(first, a_hook(), second)) == SELECTS
    assert explain(NAMESPACE, a_configuration(a_hook(), first)) == SELECTS


def test_without_the_webhooks_or_the_pod_nothing_is_explained() -> None:
    assert explain(NAMESPACE) == ""
    facts = DiagnosisFacts("default", "lab", "job-0", NOW, objects=collect_objects([a_configuration(a_hook())]))
    assert explain_missing_call(facts, OF_HAMI, "HAMi") is None
    pod = PodOnCluster(Evidence("pod", "lab/job-0"))
    assert explain_missing_call(DiagnosisFacts("default", "lab", "job-0", NOW, pod=pod), OF_HAMI, "HAMi") is None


QUEUE: Json = {
    "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue", "metadata": {"name": "night", "namespace": "lab"},
}  # fmt: skip
LABELS = {"kueue.x-k8s.io/queue-name": "night"}


def list_clauses(*objects: Json, **pod: Any) -> list[list[str]]:
    """List the clauses of each obstacle that the check of Kueue's webhook finds."""
    steps = check_kueue_webhook(build_facts(*objects, **{"labels": LABELS, **pod}))
    return [list(obstacle.clauses) for step in steps for obstacle in step.obstacles]


@pytest.mark.parametrize(
    ("objects", "pod", "clauses"),
    [
        ([QUEUE], {}, [[]]),
        ([a_configuration(a_hook())], {}, [["gap"]]),
        ([QUEUE], {"gates": ("example.org/copied",)}, [[]]),
        ([QUEUE], {"labels": {}}, []),
        # A pod of a Job is let in with its Job; Kueue's webhook adds a label and a gate.
        ([QUEUE], {"owners": ("Job/train",)}, []),
        ([QUEUE], {"labels": {**LABELS, "kueue.x-k8s.io/managed": "true"}}, []),
        ([QUEUE], {"gates": ("kueue.x-k8s.io/admission",)}, []),
        ([QUEUE], {"gates": ("example.org/copied", "kueue.x-k8s.io/topology")}, []),
        # A cluster of which neither queues nor webhooks were read may have no Kueue.
        ([NAMESPACE], {}, []),
    ],
)
def test_kueue_has_not_taken_a_pod_that_names_its_queue_and_has_neither_its_gate_nor_its_label(
    objects: list[Json], pod: dict[str, Any], clauses: list[list[str]]
) -> None:
    assert list_clauses(*objects, **pod) == clauses
