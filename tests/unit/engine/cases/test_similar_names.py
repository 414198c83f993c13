"""Names that are most similar to one that does not exist: those elsewhere first, then those here, then others."""

import pytest

from engine.cases.similar_names import MAX_SIMILAR, list_similar_names, rank_similar_names


@pytest.mark.parametrize(
    ("pairs", "similar"),
    [
        ([("ml", "trainer")], ["ml/trainer"]),
        ([("ml", "web")], []),
        # The same name elsewhere, then a similar one here, then a similar one elsewhere.
        ([("far", "trains"), ("ml", "trains"), ("far", "train")], ["far/train", "ml/trains", "far/trains"]),
        ([("ml", "trainers"), ("ml", "trains")], ["ml/trains", "ml/trainers"]),
        ([("ml", "trains"), ("ml", "trains")], ["ml/trains"]),
        # One of two namespaces that have the similar name does not hide the other.
        ([("a", "trains"), ("b", "trains"), ("b", "web")], ["a/trains", "b/trains"]),
        ([], []),
    ],
)
def test_names_are_ranked_by_where_and_how_near_they_are(pairs: list[tuple[str, str]], similar: list[str]) -> None:
    assert rank_similar_names(pairs, "ml", "train") == similar


@pytest.mark.parametrize(("count", "listed"), [(MAX_SIMILAR, MAX_SIMILAR), (MAX_SIMILAR + 1, MAX_SIMILAR)])
def test_no_more_names_are_listed_than_a_sentence_holds(count: int, listed: int) -> None:
    elsewhere = [(f"team-{number}", "train") for number in range(count)]
    assert len(rank_similar_names(elsewhere, "ml", "train")) == listed
    assert len(rank_similar_names([*elsewhere, ("ml", "trains")], "ml", "train")) == MAX_SIMILAR


def test_objects_may_be_lists_of_an_api_server() -> None:
    items = [{"metadata": {"namespace": "ml", "name": "trains"}}, {"metadata": {"namespace": "ml", "name": "web"}}]
    pods = {"apiVersion": "v1", "kind": "PodList", "items": items}
    assert list_similar_names([pods], "ml", "train") == ["ml/trains"]
