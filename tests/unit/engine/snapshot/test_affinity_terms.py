"""Required terms of inter-pod affinity, as the API reference of PodAffinityTerm documents their namespaces."""

from typing import Any

import pytest

from engine.snapshot.affinity_terms import AffinityTerm, read_required_terms

TEAM = {"matchLabels": {"team": "a"}}


def read_term(**fields: Any) -> AffinityTerm:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}, **fields}
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    (read,) = read_required_terms({"affinity": {"podAffinity": rule}}, "podAffinity", "own")
    return read


@pytest.mark.parametrize(
    ("fields", "namespaces"),
    [
        # "null or empty namespaces list and null namespaceSelector means "this pod's namespace""
        ({}, {"own"}),
        ({"namespaces": []}, {"own"}),
        ({"namespaces": ["other"]}, {"other"}),
        # "The term is applied to the union of the namespaces" listed and selected.
        ({"namespaceSelector": TEAM}, {"team"}),
        ({"namespaces": ["other"], "namespaceSelector": TEAM}, {"other", "team"}),
        # "An empty selector matches all namespaces."
        ({"namespaceSelector": {}}, {"own", "other", "team"}),
    ],
)
def test_a_term_looks_into_the_namespaces_that_it_names_and_selects(
    fields: dict[str, Any], namespaces: set[str]
) -> None:
    term = read_term(**fields)
    labels: dict[str, dict[str, str]] = {"own": {}, "other": {}, "team": {"team": "a"}}
    assert {name for name in labels if term.includes(name, labels[name])} == namespaces
    assert {name for name in labels if term.selects(name, {"app": "x"}, labels[name])} == namespaces
    assert not any(term.selects(name, {"app": "y"}, labels[name]) for name in labels)


def test_only_required_terms_of_the_kind_are_read() -> None:
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": {}}]}
    assert read_required_terms({"affinity": {"podAffinity": preferred}}, "podAffinity", "own") == ()
    assert read_required_terms({"affinity": {"podAffinity": None}}, "podAffinity", "own") == ()
    assert read_required_terms({}, "podAntiAffinity", "own") == ()
