"""The sentence about the constraints that together keep a pod from every node (``excluded_by``), in both languages."""

from collections.abc import Sequence
from types import MappingProxyType

from page.views.tables import table


def constraints() -> MappingProxyType[str, dict[str, str]]:
    """Constraint, as answers have it, to what it is called in each language (``en``, ``zh``)."""
    return table("constraints")


def exclusion_sentence(excluded_by: Sequence[str] | None, language: str) -> str:
    """Empty where no such set is known. A constraint of a newer API is named as the API names it."""
    if not excluded_by:
        return ""
    known = constraints()
    names = [known[constraint][language] if constraint in known else constraint for constraint in excluded_by]
    if language == "zh":
        return f"仅此一项就使它无处可放：{names[0]}。" if len(names) == 1 else _together_zh(names)
    return f"One thing alone keeps it from every node: {names[0]}." if len(names) == 1 else _together_en(names)


def _together_en(names: Sequence[str]) -> str:
    listed = f"{', '.join(names[:-1])} and {names[-1]}"
    return f"Only together these keep it from every node, and without any one of them it would fit somewhere: {listed}."


def _together_zh(names: Sequence[str]) -> str:
    return f"以下各项合在一起才使它无处可放，去掉其中任何一项即可放置：{'、'.join(names)}。"
