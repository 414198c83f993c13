"""Lists of names in a sentence."""

from engine.diagnosis.wording import enumerate_names, shorten_list
from schemas.answers.diagnosis import InBothLanguages


def test_names_are_listed_as_a_sentence_has_them() -> None:
    assert enumerate_names(["A40"], "or") == InBothLanguages(en="A40", zh="A40")
    assert enumerate_names(["A40", "T4"], "and") == InBothLanguages(en="A40 and T4", zh="A40 和 T4")
    assert enumerate_names(["A40", "H100", "T4"], "or") == InBothLanguages(en="A40, H100 or T4", zh="A40、H100 或 T4")


def test_only_the_first_names_are_listed_and_each_language_has_its_own_comma() -> None:
    assert shorten_list(["node1"]) == InBothLanguages(en="node1", zh="node1")
    assert shorten_list([f"node{number}" for number in range(1, 8)]) == InBothLanguages(
        en="node1, node2, node3, node4, node5, … (+2)", zh="node1、node2、node3、node4、node5、… (+2)"
    )
