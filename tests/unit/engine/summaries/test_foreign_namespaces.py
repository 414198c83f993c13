"""References to pods of foreign namespaces in complete answers."""

import pytest

from engine.summaries.foreign_namespaces import hide_namespaces
from engine.summaries.named_pods import HIDDEN_POD

FOREIGN = frozenset(("team-b", "com", "3", "namespaces", "v1", "nvidia"))


@pytest.mark.parametrize(
    ("answer", "redacted"),
    [
        ('{"a":"see.team-b/x"}', f'{{"a":"see.{HIDDEN_POD}"}}'),
        ('{"team-b/x":1}', f'{{"{HIDDEN_POD}":1}}'),
        (r'{"a":"l\nteam-b/x"}', rf'{{"a":"l\n{HIDDEN_POD}"}}'),
        (r'{"a":"\\team-b/x"}', rf'{{"a":"\\{HIDDEN_POD}"}}'),
        (r'{"a":"\u0001team-b/x"}', rf'{{"a":"\u0001{HIDDEN_POD}"}}'),
        ("/api/v1/namespaces/team-b/pods/x", f"/api/v1/namespaces/{HIDDEN_POD}"),
        ("team-b/x/main, x_team-b(6f1c)", f"{HIDDEN_POD}, {HIDDEN_POD}(6f1c)"),
        ("team-b/x", HIDDEN_POD),
        # An image whose organization is named like a namespace: hidden, because the two look alike.
        ("nvcr.io/nvidia/cuda:12", f"nvcr.io/{HIDDEN_POD}:12"),
    ],
)
def test_a_reference_is_hidden_whatever_surrounds_it(answer: str, redacted: str) -> None:
    assert hide_namespaces(answer.encode(), FOREIGN).decode() == redacted


@pytest.mark.parametrize(
    "answer",
    [
        "team-a/x and my-team-b/x",
        "3/8 CardInsufficientMemory",
        "nvidia.com/gpu",
        "/api/v1/namespaces/team-a/pods/x",
        "team-b of secret",
    ],
)
def test_what_names_no_foreign_pod_is_the_same_object(answer: str) -> None:
    """The owner of a namespace named like a word of paths, counts or domains hides nothing from others."""
    encoded = answer.encode()
    assert hide_namespaces(encoded, FOREIGN) is encoded
