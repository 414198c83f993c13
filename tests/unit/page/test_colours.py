"""One colour for a reason, wherever it is drawn; green for what is free or fits."""

import re
from collections.abc import Iterator
from typing import Final

import pytest

from page.colours import COLOURS, choose_colour, choose_colours, map_colours
from page.plots import Series, draw_bars_over_time, draw_bars_side_by_side
from page.render import STATIC
from schemas.indices import LAYERS
from schemas.reasons import read_catalogue

PAIRS: Final = (("CardInsufficientMemory", "CardInsufficientCore"), ("CardCordoned", "CardNotHealth"))


@pytest.mark.parametrize("codes", [["CardInsufficientCore"], ["NumaNotFit", "CardInsufficientCore"]])
def test_a_reason_has_the_same_colour_next_to_any_other(codes: list[str]) -> None:
    number = choose_colour("CardInsufficientCore")
    assert map_colours(codes)["CardInsufficientCore"] == f"c{number}"
    plot = draw_bars_over_time("Reasons", ["2026-11-23T09:30:00Z"], [Series(code, [1]) for code in codes], 60)
    assert re.findall(r'class="p(\d+)"[^>]*><title>2026-11-23T09:30:00Z CardInsufficientCore', plot) == [number]
    assert f'class="p{number}"' in draw_bars_side_by_side("Causes", [("CardInsufficientCore", 1.0)])


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_frequent_reasons_differ(first: str, second: str) -> None:
    assert choose_colour(first) != choose_colour(second)


def test_every_reason_has_a_colour_of_the_palette_and_fitting_has_green() -> None:
    assert {choose_colour(code) for code in read_catalogue()} <= {str(number) for number in range(COLOURS)}
    assert map_colours([])["fits"] == "fits"
    assert choose_colour("succeeded") == "fits"


def test_a_dozen_names_of_one_drawing_differ_and_the_first_keeps_its_own() -> None:
    # By their letters alone, both have the tenth colour: 1*97 + 2*98 and 1*97 + 2*104 differ by a dozen.
    assert choose_colour("ab") == choose_colour("ah")
    assert choose_colours(["ab", "ah"])[0] == choose_colour("ab") != choose_colours(["ab", "ah"])[1]
    assert len({*choose_colours([f"team-{number}" for number in range(COLOURS)])}) == COLOURS
    # A reason has its own wherever it stands, and what has no name is grey.
    drawn = choose_colours(["ab", "CardInsufficientCore", "", ""])
    assert drawn[1:] == [choose_colour("CardInsufficientCore"), "rest", "not-reached"]


def test_a_layer_has_the_colour_of_the_time_line_of_a_pod() -> None:
    style = (STATIC / "style.css").read_text()
    for layer in LAYERS:
        (colour,) = re.findall(rf"\.waits \.{layer} {{ fill: var\(--(\w+)\); }}", style)
        assert f".p{choose_colour(layer)} {{ fill: var(--{colour}); }}" in style


def list_palette() -> Iterator[tuple[str, int, int, int]]:
    for name, value in re.findall(r"--(r\d+): #([0-9a-f]{6})", (STATIC / "style.css").read_text()):
        yield name, *(int(value[start : start + 2], 16) for start in (0, 2, 4))


def test_no_reason_is_green() -> None:
    assert [name for name, red, green, blue in list_palette() if green > max(red, blue)] == []
