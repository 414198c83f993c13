"""What every page knows: its language, its address, its cluster; and links that keep language and cluster."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import quote, urlencode

from page.texts import LANGUAGES, Language, text

ROOT: Final = "/ui"
KEPT: Final = ("lang", "cluster")
"""Parameters that every link has, where the address has them."""

NAVIGATION: Final = ("pending", "trends", "report", "findings", "search", "nodes", "simulate", "about")
"""The pages that every page leads to, by their texts' keys."""


@dataclass(frozen=True, slots=True)
class PageContext:
    language: Language
    path: str
    query: Sequence[tuple[str, str]]
    now: datetime
    cluster: str = ""
    """The name of the cluster that the page is about; empty where that is not known."""
    origin: str = ""
    """``https://host:port``, for commands to copy; empty where the request names no host that can be one."""
    can_log_out: bool = False
    is_embedded: bool = False

    def text(self, key: str, **values: object) -> str:
        return text(self.language, key, **values)

    def in_language(self, texts: object) -> str:
        """The text in the reader's language, from a text in both (``{en, zh}``)."""
        return str(texts[self.language] if isinstance(texts, dict) else getattr(texts, self.language))

    def url(self, path: str, **parameters: object) -> str:
        """The address of another page; parameters that are None or empty are left out."""
        kept = [(name, value) for name, value in self.query if name in KEPT]
        given = [(name, str(value)) for name, value in parameters.items() if value not in (None, "")]
        return _address(path, [*kept, *given])

    def here(self, **changed: object) -> str:
        """The address of this page with other parameters; None or empty removes one."""
        rest = [(name, value) for name, value in self.query if name not in changed]
        given = [(name, str(value)) for name, value in changed.items() if value not in (None, "")]
        return _address(self.path, [*rest, *given])

    def with_path(self, path: str) -> str:
        """The address with all parameters of this page at another path."""
        return _address(path, list(self.query))

    def value(self, name: str) -> str:
        """The value of a parameter of this page; empty without it."""
        return next((value for key, value in self.query if key == name), "")

    @property
    def other_languages(self) -> tuple[Language, ...]:
        return tuple(language for language in LANGUAGES if language != self.language)

    @property
    def api(self) -> str:
        """What the paths of the API about this cluster begin with."""
        named = self.value("cluster")
        return f"/api/v1/clusters/{named}" if named else "/api/v1"

    def pod(self, namespace: str, name: str, **parameters: object) -> str:
        return self.url(f"{ROOT}/pods/{namespace or '-'}/{name}", **parameters)

    def node(self, name: str, **parameters: object) -> str:
        return self.url(f"{ROOT}/nodes/{name}", **parameters)


def _address(path: str, parameters: Sequence[tuple[str, str]]) -> str:
    written = quote(path)
    return f"{written}?{urlencode(parameters)}" if parameters else written
