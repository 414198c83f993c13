"""Terms of node selectors: conditions that Kubernetes' validation refuses match no node."""

from typing import Any

import pytest

from engine.snapshot.selectors import read_node_selector_term


@pytest.mark.parametrize(
    ("field", "is_malformed"),
    [
        # matchFields takes In and NotIn, with exactly one value.
        ({"operator": "In", "values": ["n1"]}, False),
        ({"operator": "NotIn", "values": ["n2"]}, False),
        ({"operator": "In", "values": ["n1", "n2"]}, True),
        ({"operator": "In", "values": []}, True),
        ({"operator": "Exists"}, True),
        ({"operator": "Gt", "values": ["1"]}, True),
    ],
)
def test_a_condition_on_the_name_has_one_value(field: dict[str, Any], is_malformed: bool) -> None:
    term = read_node_selector_term({"matchFields": [{"key": "metadata.name", **field}]}, "term")
    assert term.is_malformed is is_malformed
    assert term.matches({}, "n1") is not is_malformed
