"""From an object of kustomize and the patches of a component to the text of a template."""

import pytest
import yaml

from deploy.helm_from_kustomize.branches import ABSENT, Branch, Expression, HelmLines, add_branches, choose, edit
from deploy.helm_from_kustomize.manifests import Patch
from deploy.helm_from_kustomize.text import write_object

BEFORE = {"kind": "Deployment", "spec": {"args": ["serve"], "strategy": {"rollingUpdate": {"maxSurge": 1}}}}


def test_a_patched_place_depends_on_the_condition_and_the_rest_does_not() -> None:
    after = {
        "kind": "Deployment",
        "spec": {"args": ["serve", "--more"], "replicas": 3, "strategy": {"type": "Recreate"}},
    }
    tree = add_branches(BEFORE, BEFORE, after, ".Values.more")
    assert choose(tree, holds=True) == after
    assert choose(tree, holds=False) == BEFORE
    assert tree["kind"] == "Deployment"
    assert tree["spec"]["args"] == ["serve", Branch(".Values.more", "--more", ABSENT)]


def test_the_later_of_two_conditions_about_one_place_comes_first() -> None:
    first = add_branches({"a": 1}, {"a": 1}, {"a": 2}, "first")
    assert add_branches(first, {"a": 1}, {"a": 3}, "second") == {"a": Branch("second", 3, Branch("first", 2, 1))}


def test_conditions_are_written_around_their_entries() -> None:
    tree = {"spec": {"args": ["all", Branch(".Values.x", "--y", ABSENT)], "type": Branch("a", "A", "B")}}
    assert write_object(tree) == (
        "spec:\n"
        "  args:\n"
        "    - all\n"
        "    {{- if .Values.x }}\n"
        "    - --y\n"
        "    {{- end }}\n"
        "  {{- if a }}\n"
        "  type: A\n"
        "  {{- else }}\n"
        "  type: B\n"
        "  {{- end }}\n"
    )


def test_text_of_helm_is_printed_as_it_is_and_braces_of_others_are_quoted() -> None:
    tree = {
        "name": Expression("{{ .Release.Name }}"),
        "more": HelmLines("{{- with .x }}\ny: {{ . }}\n{{- end }}"),
        "v": "{{ $value }}",
    }
    assert write_object(tree) == (
        "name: {{ .Release.Name }}\n{{- with .x }}\ny: {{ . }}\n{{- end }}\nv: '{{ \"{{\" }} $value }}'\n"
    )


@pytest.mark.parametrize(
    "value",
    [
        "",
        "a: b",
        "a, b",
        "[a]",
        "yes",
        "1",
        "0x1",
        "- a",
        "null",
        "a #b",
        "'a'",
        "ä",
        "*",
        "!x",
        "a\nb",
        1,
        True,
        None,
        [],
        {},
    ],
)
def test_plain_values_are_read_back_as_they_were(value: object) -> None:
    """Read what stands in blocks and between braces by ``yaml``."""
    tree = {"metadata": {"a": value, "b": [{"c": value, "d": [value]}]}}
    assert yaml.safe_load(write_object(tree)) == tree


def test_an_edit_gets_the_path_of_each_value_also_below_a_condition() -> None:
    tree = edit(
        {"a": [{"b": Branch("x", "c", "d")}], "e": "f"},
        lambda path, value: f"{value}!" if path == "a.0.b" and isinstance(value, str) else value,
    )
    assert tree == {"a": [{"b": Branch("x", "c!", "d!")}], "e": "f"}


ITEM = {"kind": "Job", "metadata": {"name": "one", "labels": {"part": "a"}}}


@pytest.mark.parametrize(
    ("target", "is_one"),
    [
        ({"kind": "Job|CronJob"}, True),
        ({"kind": "Jo"}, False),
        ({"name": "on."}, True),
        ({"labelSelector": "part=a"}, True),
        ({"labelSelector": "part in (b,a)"}, True),
        ({"labelSelector": "part in (b,c)"}, False),
        ({"annotationSelector": "!part"}, True),
        ({"kind": "Job", "name": "two"}, False),
    ],
)
def test_targets_are_chosen_as_kustomize_chooses_them(target: dict[str, str], is_one: bool) -> None:
    assert Patch(target, ()).has_target(ITEM) is is_one


def test_a_selector_that_is_not_known_is_refused() -> None:
    with pytest.raises(ValueError, match="not known here: part notin"):
        Patch({"labelSelector": "part notin (a)"}, ()).has_target(ITEM)
