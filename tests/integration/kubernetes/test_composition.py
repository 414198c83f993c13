"""Components of deploy/kustomize in every order, on every overlay, in another namespace."""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from dev.embedded.control_plane import ControlPlane
from runtime.cli.installation import VERSION
from schemas.json_types import Json
from tests.support.control_plane.deployed import (
    KUSTOMIZE,
    NAMESPACE,
    OVERLAYS,
    apply,
    build,
    combine,
    define_others_kinds,
    emptied,
    select_kinds,
)
from tests.support.control_plane.problems import FOREIGN, identify, list_problems
from tests.support.stress import IS_STRESS

ALTERNATIVES = ("tls/kafka-scram", "keda-tls/kafka-certificate", "keda-tls/kafka-scram", "keda-tls/strimzi")
"""Components that say the opposite of another one (`tls`, `strimzi`), users and passwords in place of certificates, or
that have another one in them (`keda`)."""
PARTS_OF_OTHERS = ("pods", "labels", "hami", "tls/kafka-certificate", "tls/opensearch")
"""Listed by other components, or (`hami`) for the manifests of HAMi."""
COMPONENTS = tuple(
    name
    for path in sorted((KUSTOMIZE / "components").rglob("kustomization.yaml"))
    if (name := str(path.parent.relative_to(KUSTOMIZE / "components"))) not in {*ALTERNATIVES, *PARTS_OF_OTHERS}
)
OWN_NAMESPACE = "gpu-observability"
OLD_NAMESPACE = re.compile(
    r"\bschedulerlog-\w+\.schedulerlog\b|(?<!com/)(?<!io/)\bschedulerlog/schedulerlog-"
    r"|serviceaccounts:' \+ 'schedulerlog'"
)
"""The namespace in the name of a Service, of a Secret (`NAMESPACE/NAME`) and of the accounts in it."""
COMPOSITION = (KUSTOMIZE.parents[1] / "docs/composition.md").read_text()
_SET_SIZE = 8
"""Components of a set: few enough that a third one seldom hides what two of them lack."""


def list_overlay_components(overlay: str) -> set[str]:
    """List what an overlay has already; the same component twice is refused by kustomize, in words."""
    document = yaml.safe_load((KUSTOMIZE / "overlays" / overlay / "kustomization.yaml").read_text())
    names = {path.rpartition("components/")[2] for path in document.get("components", ())}
    below = [path.rpartition("/")[2] for path in document["resources"] if path.startswith("../") and "base" not in path]
    return names.union(*(list_overlay_components(name) for name in below))


def list_addable(overlay: str) -> list[str]:
    has = list_overlay_components(overlay)
    # Both set the address of Kafka; strimzi goes over the tls of an overlay.
    without = has | ({"strimzi"} if "tls" not in has else set())
    return [name for name in COMPONENTS if name not in without and not has & {name.partition("/")[0]}]


def to_comparable(objects: Sequence[Json]) -> dict[tuple[str, str, str], Json]:
    return {identify(item): item for item in objects}


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    define_others_kinds(control_plane)
    namespaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in (NAMESPACE, OWN_NAMESPACE)
    ]
    with emptied(control_plane):
        apply(control_plane, namespaces)
        yield control_plane


@pytest.fixture(scope="module")
def build_all(cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[Json]]:
    """Builds an overlay with all components, in their order: once, because a build takes seconds."""
    folder = tmp_path_factory.mktemp("all")
    return cache(
        lambda overlay: build(
            cluster, combine(folder / overlay, KUSTOMIZE / "overlays" / overlay, list_addable(overlay))
        )
    )


@pytest.mark.stress
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_order_of_components_changes_nothing(
    cluster: ControlPlane, build_all: Callable[[str], list[Json]], overlay: str, tmp_path: Path
) -> None:
    """An order and its reverse have every pair both ways; in ``make stress`` three more are drawn where processes are
    most."""
    names = list_addable(overlay)
    assert len(names) > 12
    generator = random.Random(overlay)
    drawn = 3 if IS_STRESS and overlay == "production-scheduler" else 0
    first = build_all(overlay)
    assert list(list_problems(first, NAMESPACE)) == []
    for number, order in enumerate([names[::-1], *(generator.sample(names, len(names)) for _ in range(drawn))]):
        objects = build(cluster, combine(tmp_path / str(number), KUSTOMIZE / "overlays" / overlay, order))
        assert to_comparable(objects) == to_comparable(first)
    jobs = {"Job", "CronJob"}
    apply(cluster, [item for item in first if item["kind"] not in jobs], "--dry-run=server", "--force-conflicts")


@pytest.mark.parametrize("overlay", ["demo", "small", "production-scheduler"])
def test_every_object_has_the_labels_that_kubernetes_recommends(
    build_all: Callable[[str], list[Json]], overlay: str
) -> None:
    """https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels/"""
    objects = build_all(overlay)
    wanted = {
        "app.kubernetes.io/instance": "schedulerlog", "app.kubernetes.io/version": VERSION,
        "app.kubernetes.io/managed-by": "kustomize",
    }  # fmt: skip
    by_object = {identify(item): item["metadata"]["labels"] for item in objects}
    assert [key for key, labels in by_object.items() if not wanted.items() <= labels.items()] == []
    others = {"app.kubernetes.io/name", "app.kubernetes.io/part-of"}
    assert [key for key, labels in by_object.items() if not others <= labels.keys()] == []
    # Selectors can't be changed, and a version in a pod would replace it.
    for item in objects:
        spec = item.get("spec") or {}
        assert "app.kubernetes.io/version" not in str((spec.get("selector"), spec.get("template")))


def test_objects_of_others_keep_their_labels(cluster: ControlPlane, tmp_path: Path) -> None:
    folder = combine(tmp_path / "mine", KUSTOMIZE / "overlays/observe", ["events", "prometheus"])
    mine = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine", "labels": {"app": "other"}}}
    (folder / "mine.yaml").write_text(yaml.safe_dump(mine))
    path = folder / "kustomization.yaml"
    document = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump(document | {"resources": [*document["resources"], "mine.yaml"]}))
    (unchanged,) = (item for item in build(cluster, folder) if item["metadata"]["name"] == "mine")
    assert unchanged == mine


def test_alerts_link_the_copy_of_the_runbooks_that_an_overlay_names(cluster: ControlPlane, tmp_path: Path) -> None:
    folder = combine(tmp_path / "linked", KUSTOMIZE / "base", ["prometheus"])
    path = folder / "kustomization.yaml"
    (folder / "runbooks.yaml").write_text((KUSTOMIZE / "runbooks.yaml").read_text())
    (block,) = re.findall(r"```yaml\n(configMapGenerator:.*?runbooks\.yaml.*?)```", COMPOSITION, re.DOTALL)
    before = list_runbooks(build(cluster, folder))
    path.write_text(path.read_text() + block)
    after = list_runbooks(build(cluster, folder))
    assert len(before) > 15
    assert {link.partition("#")[0] for link in before} == {"docs/runbooks.md"}
    pages = "https://git.example.com/gpu/schedulerlog/docs/runbooks.md"
    assert after == [link.replace("docs/runbooks.md", pages) for link in before]


def list_runbooks(objects: Sequence[Json]) -> list[str]:
    groups = [group for item in objects if item["kind"] == "PrometheusRule" for group in item["spec"]["groups"]]
    return [rule["annotations"]["runbook_url"] for group in groups for rule in group["rules"] if "alert" in rule]


def draw_sets(names: Sequence[str], generator: random.Random) -> Iterator[list[str]]:
    """Draw sets of eight, each in an order of its own, until every pair is in one of them."""
    missing = {frozenset(pair) for pair in combinations(names, 2)}
    while missing:
        drawn = sorted(min(missing, key=sorted))
        while len(drawn) < _SET_SIZE:
            # The one that has not met most of those that are drawn.
            others = generator.sample([name for name in names if name not in drawn], len(names) - len(drawn))
            drawn.append(max(others, key=lambda name: sum(frozenset((name, other)) in missing for other in drawn)))
        missing -= {frozenset(both) for both in combinations(drawn, 2)}
        yield generator.sample(drawn, len(drawn))


def test_every_pair_of_components_starts(cluster: ControlPlane, tmp_path: Path) -> None:
    """On the smallest overlay, whose processes are in every other one too."""
    names = list_addable("spoke")
    assert len(names) > 20
    problems = {}
    for number, order in enumerate(draw_sets(names, random.Random(len(names)))):
        objects = build(cluster, combine(tmp_path / str(number), KUSTOMIZE / "overlays/spoke", order))
        if set_problems := list(list_problems(objects, NAMESPACE)):
            problems[tuple(order)] = set_problems
    assert problems == {}


@pytest.mark.parametrize(
    ("way", "component"), [("kafka-certificate", "tls"), ("kafka-scram", "tls/kafka-scram"), ("strimzi", "strimzi")]
)
def test_keda_with_credentials_goes_with_the_way_to_kafka_in_any_order(
    cluster: ControlPlane, way: str, component: str, tmp_path: Path
) -> None:
    names = [f"keda-tls/{way}", component, "high-availability", "kube-events"]
    first, second = [
        build(cluster, combine(tmp_path / str(number), KUSTOMIZE / "base", order))
        for number, order in enumerate((names, names[::-1]))
    ]
    assert to_comparable(first) == to_comparable(second)
    assert list(list_problems(first, NAMESPACE)) == []
    scaled = select_kinds(first, "ScaledObject")
    triggers = [trigger for item in scaled for trigger in item["spec"]["triggers"]]
    authentications = select_kinds(first, "TriggerAuthentication")
    names_of_authentications = {item["metadata"]["name"] for item in authentications}
    assert len(triggers) == 2
    assert {trigger["authenticationRef"]["name"] for trigger in triggers} == names_of_authentications
    apply(cluster, [*scaled, *authentications], "--dry-run=server", "--force-conflicts")


@pytest.mark.parametrize("overlay", ["scheduler", "spoke"])
def test_another_namespace_is_named_everywhere(
    cluster: ControlPlane, build_all: Callable[[str], list[Json]], overlay: str, tmp_path: Path
) -> None:
    """Also where rights are given to the API and the overlay has none."""
    names = list_addable(overlay)
    folder = combine(tmp_path / "own", KUSTOMIZE / "overlays" / overlay, names)
    path = folder / "kustomization.yaml"
    replacements = tmp_path / "own" / "namespace.yaml"
    replacements.write_text((KUSTOMIZE / "namespace.yaml").read_text())
    document = yaml.safe_load(path.read_text())
    move = {"namespace": OWN_NAMESPACE, "replacements": [{"path": replacements.name}]}
    path.write_text(yaml.safe_dump(document | move))
    objects = build(cluster, folder)
    assert list(list_problems(objects, OWN_NAMESPACE)) == []
    in_foreign = {identify(item) for item in build_all(overlay) if item["metadata"].get("namespace") in FOREIGN}
    assert in_foreign == {identify(item) for item in objects if item["metadata"].get("namespace") in FOREIGN}
    assert len(in_foreign) >= 5
    texts = [text for item in objects for text in iterate_texts(item)]
    assert [text for text in texts if OLD_NAMESPACE.search(text)] == []
    assert len([text for text in texts if OLD_NAMESPACE.search(text.replace(OWN_NAMESPACE, NAMESPACE))]) >= 6
    jobs = {"Job", "CronJob"}
    apply(cluster, [item for item in objects if item["kind"] not in jobs], "--dry-run=server", "--force-conflicts")


def iterate_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from iterate_texts(part)
