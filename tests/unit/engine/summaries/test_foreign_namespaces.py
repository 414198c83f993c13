"""References to pods of foreign namespaces in complete answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.summaries.foreign_namespaces import KnownNamespaces, hide_namespaces
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


def test_a_text_for_a_namespace_is_searched_for_all_other_names() -> None:
    namespaces = KnownNamespaces()
    namespaces.add(["team-a", "team-b", ""])
    text = "job/train, see.team-b/x, x_team-b(6f1c), team-a/y, y_team-a(6f1c) and 3/8 CardBusy"
    hidden = f"job/train, see.{HIDDEN_POD}, {HIDDEN_POD}(6f1c), team-a/y, y_team-a(6f1c) and 3/8 CardBusy"
    assert namespaces.hide_others(text, "team-a") == hidden


NAMESPACES = st.from_regex(r"team-[a-z]{1,6}", fullmatch=True)
SURROUNDINGS = st.sampled_from(["", "see.", "node=", "(", "\n", "é ", "registry.io/", '"', "/var/lib/", "\U0001f600"])
FORMS = st.sampled_from(
    ["{n}/pod-1", "pod-1_{n}(6f1c)", "/registry/pods/{n}/pod-1", "/api/v1/namespaces/{n}/pods/pod-1", "{n}/pod-1/main"]
)


@given(reader=NAMESPACES, names=st.sets(NAMESPACES, min_size=1), before=SURROUNDINGS, form=FORMS, data=st.data())
def test_no_text_for_a_namespace_names_a_pod_of_another_known_one(
    reader: str, names: set[str], before: str, form: str, data: st.DataObject
) -> None:
    namespaces = KnownNamespaces()
    namespaces.add({reader, *names})
    namespace = data.draw(st.sampled_from(sorted(names)))
    text = f"{before}{form.format(n=namespace)} is there"
    hidden = namespaces.hide_others(text, reader)
    if namespace == reader:
        assert hidden == text
    else:
        assert namespace not in hidden
        assert "pod-1" not in hidden
        assert hidden.endswith(" is there")
    assert namespaces.hide_others(hidden, reader) == hidden
