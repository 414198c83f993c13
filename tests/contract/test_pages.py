"""Pages under docs/: one task each, short enough to be read, and links that lead somewhere."""

import re
from functools import cache
from pathlib import Path

import pytest

LIMIT = 2_500
"""Words of a page, as `wc -w` counts them."""

DOCS = Path("docs")
NOTEBOOK = DOCS / "measurements.md"
"""The only page without the limit: measurements with their circumstances."""

PAGES = sorted(DOCS.glob("*.md"))
LINKED = [
    *PAGES,
    *sorted((DOCS / "decisions").glob("*.md")),
    *map(Path, ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")),
]
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s#]*)(?:#([^)\s]+))?\)")


@cache
def list_anchors(page: Path) -> frozenset[str]:
    """List the anchors that GitHub makes of the page's headings."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#{1,6} (.+)$", text, re.MULTILINE)
    return frozenset(re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings)


def list_broken_links(page: Path) -> list[str]:
    """List the links to files that do not exist, and to sections that their page does not have."""
    broken = []
    for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        path = page.parent / target if target else page
        if not path.exists() or (anchor and path.suffix == ".md" and anchor not in list_anchors(path)):
            broken.append(f"{target}#{anchor}" if anchor else target)
    return broken


@pytest.mark.parametrize("page", [page for page in PAGES if page != NOTEBOOK], ids=lambda page: page.name)
def test_a_page_is_within_the_limit(page: Path) -> None:
    words = len(page.read_text(encoding="utf-8").split())
    assert words <= LIMIT, "divide the page by task, or shorten it"


@pytest.mark.parametrize("page", LINKED, ids=str)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    assert list_broken_links(page) == []


def test_every_page_is_linked_by_the_readme_or_by_a_page_that_it_links() -> None:
    reached, waiting = set[Path](), [Path("README.md")]
    while waiting:
        page = waiting.pop()
        for target, _ in LINK.findall(page.read_text(encoding="utf-8")):
            path = (page.parent / target).resolve().relative_to(Path.cwd())
            if path.suffix == ".md" and path.exists() and path not in reached:
                reached.add(path)
                waiting.append(path)
    assert [page for page in PAGES if page not in reached] == []


def test_the_changelog_lists_the_changes_of_each_version_by_kind() -> None:
    headings = re.findall(r"^(##+) (.+)$", Path("CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert {title for level, title in headings if level == "###"} <= {"Added", "Changed", "Removed", "Fixed"}
    assert next(title for level, title in headings if level == "##") == "Unreleased"


def test_a_broken_link_is_listed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One heading\n\n[a](#one-heading) [b](#two) [c](absent.md) [d](page.md#three) [e](https://example)\n"
    )
    assert list_broken_links(page) == ["#two", "absent.md", "page.md#three"]
