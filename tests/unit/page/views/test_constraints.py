"""The constraints that together exclude every node: one sentence for page, terminal and assistant."""

import re
from typing import Final, get_args

from page.views.constraints import constraints, exclusion_sentence
from schemas.answers.suggestions import Constraint

CHINESE: Final = re.compile("[\u4e00-\u9fff]")


def test_every_constraint_of_the_answer_has_a_name_in_both_languages() -> None:
    assert set(constraints()) == set(get_args(Constraint))
    for code, name in constraints().items():
        assert set(name) == {"en", "zh"}, code
        assert CHINESE.search(name["zh"]), code
        assert not CHINESE.search(name["en"]), code


def test_several_are_listed_and_one_stands_alone() -> None:
    listed = "what other pods hold, the memory it asks for and cordoned devices."
    assert exclusion_sentence(["use", "memory", "cordon"], "en").endswith(f"somewhere: {listed}")
    assert exclusion_sentence(["use", "memory"], "zh").endswith("：其他 Pod 的占用、所申请的显存。")
    alone = "One thing alone keeps it from every node: the number of devices it asks for."
    assert exclusion_sentence(["count"], "en") == alone
    assert exclusion_sentence(["count"], "zh") == "仅此一项就使它无处可放：所申请的设备数。"


def test_what_was_not_computed_is_no_sentence() -> None:
    assert exclusion_sentence(None, "en") == exclusion_sentence([], "zh") == ""


def test_a_constraint_of_a_newer_api_is_named_as_it_names_it() -> None:
    assert exclusion_sentence(["topology", "use"], "en").endswith("somewhere: topology and what other pods hold.")
