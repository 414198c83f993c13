"""Rules that every page keeps, read off its HTML."""

from html.parser import HTMLParser
from typing import Final

VOID: Final = {"base", "meta", "link", "input", "br", "rect"}


class Reader(HTMLParser):
    """Fails where elements are not closed in their order, or where something would run or be loaded from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        assert not [name for name in values if name.startswith("on") or name == "style"]
        assert tag != "script" or (values.get("src") or "").startswith("/ui/static/")
        for name in ("href", "src", "action", "data-load", "data-from"):
            assert (values.get(name) or "/").startswith(("/", "?", "#")), values
            assert not (values.get(name) or "").startswith("//"), values
        if "id" in values:
            self.ids.append(values["id"] or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


def check(html: str) -> None:
    """Fail where the document is not well-formed, has an identifier twice, or would run or load something."""
    reader = Reader()
    reader.feed(html)
    assert reader.open == []
    assert len(reader.ids) == len(set(reader.ids))
