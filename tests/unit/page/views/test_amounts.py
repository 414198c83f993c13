"""Page, terminal, assistant and diagnosis write the same amount in the same way."""

import pytest

from engine.diagnosis.texts import write_phrase
from page.formats import hours, mib
from page.views.amounts import gpu_hours, memory


@pytest.mark.parametrize(("amount", "written"), [(512, "512 MiB"), (1024, "1,024 MiB"), (81559, "81,559 MiB")])
def test_memory_is_in_mib_on_every_surface(amount: int, written: str) -> None:
    assert (
        memory(amount)
        == mib(amount)
        == write_phrase("mib", n=amount).en
        == write_phrase("mib", n=amount).zh.strip()
        == written
    )


@pytest.mark.parametrize(
    ("value", "written"), [(0.05, "0.05"), (0.0, "0.00"), (0.96, "0.96"), (1.66, "1.7"), (1340.25, "1,340.2")]
)
def test_gpu_hours_are_the_same_on_page_and_terminal(value: float, written: str) -> None:
    assert gpu_hours(value) == hours(value) == written
