"""Addresses of the project's own, in what users read: none is presented as working before somebody published it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PUBLISHED: Final[frozenset[str]] = frozenset()
"""Addresses at which something is: add one here in the commit after its publication (docs/releasing.md)."""
_PROJECT_ADDRESS: Final = re.compile(r"(?:https?://|git\+https://)?(?:github\.com|ghcr\.io)/schedulerlog/[\w./@?=:#-]*")
_REPLACED: Final = re.compile(r"\{name: ghcr\.io/schedulerlog/schedulerlog, newName: ")
"""Name of the image in the manifests, where an overlay writes another one in its place."""
PAGES: Final = [
    path
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    # How to publish, and what of it was not done.
    if path.name != "releasing.md"
]


def list_unpublished(text: str) -> Iterator[str]:
    for line in text.splitlines():
        addresses = set(_PROJECT_ADDRESS.findall(_REPLACED.sub("", line)))
        yield from sorted(addresses - PUBLISHED)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_names_no_address_at_which_nothing_is(path: Path) -> None:
    assert list(list_unpublished(path.read_text())) == []


def test_addresses_of_every_form_are_seen() -> None:
    text = (
        "kubectl apply -k 'https://github.com/schedulerlog/schedulerlog//deploy?ref=v0.1.0'\n"
        "pipx install git+https://github.com/schedulerlog/schedulerlog@v0.1.0\n"
        "docker pull ghcr.io/schedulerlog/schedulerlog:0.1.0\n"
        "  - {name: ghcr.io/schedulerlog/schedulerlog, newName: registry.example.com/schedulerlog}\n"
    )
    assert len(list(list_unpublished(text))) == 3
