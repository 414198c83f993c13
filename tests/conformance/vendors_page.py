"""The table of docs/vendors.md: per vendor how many of HAMi's recorded answers ours equal.

    python -m tests.conformance.vendors_page

writes it after a run of the second and the third collection.
"""

from pathlib import Path
from typing import Final

from tests.conformance.__main__ import SECOND, THIRD, Tally, count_verdicts
from tests.conformance.kinds import KINDS, Kind

PAGE: Final = Path(__file__).parents[2] / "docs" / "vendors.md"
_HEAD: Final = "| vendor or chip | filter calls | reviews | requests and registrations |\n|---|---|---|---|\n"
_COLUMNS: Final = ("vendor filter", "vendor webhook", "vendor codec")


def write_table() -> str:
    """Write the table, with its head, as Markdown."""
    columns = [_count(KINDS[name]) for name in _COLUMNS]
    vendors = sorted({vendor for column in columns for vendor in column})
    cells = [" | ".join([vendor, *(_write_cell(column.get(vendor)) for column in columns)]) for vendor in vendors]
    return _HEAD + "".join(f"| {row} |\n" for row in cells)


def _count(kind: Kind) -> dict[str, Tally]:
    """Count the verdicts of a kind by vendor, over both collections."""
    sums: dict[str, Tally] = {}
    for folder in (SECOND, THIRD):
        for vendor, tally in count_verdicts(kind, folder / kind.source).items():
            total = sums.setdefault(vendor, Tally())
            total.agree, total.total, total.wrong = (
                total.agree + tally.agree, total.total + tally.total, total.wrong + tally.wrong,
            )  # fmt: skip
    return sums


def _write_cell(tally: Tally | None) -> str:
    if tally is None:
        return ""
    by_rule = tally.total - tally.agree - tally.wrong
    return f"{tally.agree} of {tally.total}" + (f" ({by_rule} by rule)" if by_rule else "")


def read_table() -> str:
    """Read the table from the page."""
    return _HEAD + PAGE.read_text("utf-8").split(_HEAD)[1].split("\n\n")[0] + "\n"


if __name__ == "__main__":
    PAGE.write_text(PAGE.read_text("utf-8").replace(read_table(), write_table()), "utf-8")
