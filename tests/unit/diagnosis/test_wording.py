"""Lists of names in a sentence."""

from diagnosis.wording import enumerated
from schemas.answers.diagnosis import InBothLanguages


def test_names_are_listed_as_a_sentence_has_them() -> None:
    assert enumerated(["A40"], "or") == InBothLanguages(en="A40", zh="A40")
    assert enumerated(["A40", "T4"], "and") == InBothLanguages(en="A40 and T4", zh="A40 和 T4")
    assert enumerated(["A40", "H100", "T4"], "or") == InBothLanguages(en="A40, H100 or T4", zh="A40、H100 或 T4")
