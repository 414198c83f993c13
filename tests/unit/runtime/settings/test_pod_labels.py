"""Names of labels in a setting."""

import pytest

from runtime.settings.names import parse_label_names


@pytest.mark.parametrize(
    ("text", "names"),
    [("", ()), ("team", ("team",)), (" team , example.com/cost-center,team", ("team", "example.com/cost-center"))],
)
def test_names_stand_between_commas(text: str, names: tuple[str, ...]) -> None:
    assert parse_label_names(text) == names


@pytest.mark.parametrize("text", ["a b", "team=llm", "/a", "a/b/c", "-a", "x" * 64])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not the name of a label: write for example team,example\.com/cost"):
        parse_label_names(text)
