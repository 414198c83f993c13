"""Context of every page: its language, address and cluster, and links that keep language and cluster."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import quote, urlencode

from page.texts import LANGUAGES, Language, get_text

ROOT: Final = "/ui"
REPEATED: Final = ("lang", "cluster")
"""Parameters that every link repeats, if the address has them."""

NAVIGATION: Final = ("pending", "trends", "report", "findings", "alerts", "search", "nodes", "simulate", "about")
"""Pages in the navigation, by their texts' keys."""


@dataclass(frozen=True, slots=True)
class PageContext:
    """Context of a page."""

    language: Language
    path: str
    query: Sequence[tuple[str, str]]
    now: datetime
    cluster: str = ""
    """Name of the cluster that the page is about; empty if no source names it."""
    origin: str = ""
    """``https://host:port``, for commands to copy; empty if the request names no valid host."""
    can_log_out: bool = False
    is_embedded: bool = False
    reads_objects: bool = True
    """False where plans and workloads have no answer, because the API does not read the cluster's objects."""

    def get_text(self, key: str, **values: object) -> str:
        return get_text(self.language, key, **values)

    def choose_text(self, texts: object) -> str:
        """Choose the text in the reader's language, from a text in both (``{en, zh}``)."""
        return str(texts[self.language] if isinstance(texts, dict) else getattr(texts, self.language))

    def build_url(self, path: str, **parameters: object) -> str:
        """Build the address of another page; parameters that are None or empty are left out."""
        repeated = [(name, value) for name, value in self.query if name in REPEATED]
        added = [(name, str(value)) for name, value in parameters.items() if value not in (None, "")]
        return _build_address(path, [*repeated, *added])

    def change_url(self, **changed: object) -> str:
        """Build the address of this page with other parameters; None or empty removes one."""
        unchanged = [(name, value) for name, value in self.query if name not in changed]
        added = [(name, str(value)) for name, value in changed.items() if value not in (None, "")]
        return _build_address(self.path, [*unchanged, *added])

    def with_path(self, path: str) -> str:
        """Build the address with all parameters of this page at another path."""
        return _build_address(path, list(self.query))

    def get_value(self, name: str) -> str:
        """Return the value of a parameter of this page; empty without it."""
        return next((value for key, value in self.query if key == name), "")

    @property
    def other_languages(self) -> tuple[Language, ...]:
        return tuple(language for language in LANGUAGES if language != self.language)

    @property
    def api(self) -> str:
        """Beginning of the paths of the API about this cluster."""
        named = self.get_value("cluster")
        return f"/api/v1/clusters/{named}" if named else "/api/v1"

    def link_pod(self, namespace: str, name: str, **parameters: object) -> str:
        return self.build_url(f"{ROOT}/pods/{namespace or '-'}/{name}", **parameters)

    def link_node(self, name: str, **parameters: object) -> str:
        return self.build_url(f"{ROOT}/nodes/{name}", **parameters)


def _build_address(path: str, parameters: Sequence[tuple[str, str]]) -> str:
    written = quote(path)
    return f"{written}?{urlencode(parameters)}" if parameters else written
