"""Page, terminal, assistant and diagnosis write the same amount in the same way."""

import pytest

from engine.diagnosis.texts import write_phrase
from page.formats import format_hours, format_mib
from page.views.amounts import format_gpu_hours, format_memory, is_wait_complete


@pytest.mark.parametrize(("amount", "written"), [(512, "512 MiB"), (1024, "1,024 MiB"), (81559, "81,559 MiB")])
def test_memory_is_in_mib_on_every_surface(amount: int, written: str) -> None:
    assert (
        format_memory(amount)
        == format_mib(amount)
        == write_phrase("mib", n=amount).en
        == write_phrase("mib", n=amount).zh.strip()
        == written
    )


@pytest.mark.parametrize(
    ("value", "written"), [(0.05, "0.05"), (0.0, "0.00"), (0.96, "0.96"), (1.66, "1.7"), (1340.25, "1,340.2")]
)
def test_gpu_hours_are_the_same_on_page_and_terminal(value: float, written: str) -> None:
    assert format_gpu_hours(value) == format_hours(value) == written


@pytest.mark.parametrize(
    ("placed", "measured", "is_complete"), [(0, 0, True), (3, 3, True), (3, 2, False), (3, 0, False)]
)
def test_the_wait_is_known_where_every_placed_pod_was_measured(placed: int, measured: int, is_complete: bool) -> None:
    assert is_wait_complete(placed, measured) is is_complete
