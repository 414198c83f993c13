"""URLs, with the rules of Go's parser that a text can break."""

import re
from typing import Final
from urllib.parse import SplitResult, parse_qsl, quote

from engine.claims.cel.functions import Functions, define, index, make_overload
from engine.claims.cel.values import EvaluationError, MapValue, Url

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}")
_PORT: Final = re.compile(r"(?::[0-9]*)?")
_HOST: Final = re.compile(r"(?:\[[^\]]*\]|[^\[\]:\s<>\"^`{|}\\]*)(:[0-9]*)?")
_PATH: Final = "$&+,/:;=@!'()*~-_."
"""Characters of a path that Go does not escape, and those that it leaves as they were written."""


def split_url(text: str) -> SplitResult:
    """Split a URL; raise ValueError with the cause, in Go's words for the usual ones."""
    if _CONTROL.search(text):
        raise ValueError("net/url: invalid control character in URL")
    if not text:
        raise ValueError("empty url")
    if text.startswith(":"):
        raise ValueError("missing protocol scheme")
    scheme, tail = _split_scheme(text)
    tail, _, query = tail.partition("?")
    if not tail.startswith("/"):
        if scheme:
            return SplitResult(scheme, "", "", query, tail)
        raise ValueError("invalid URI for request")
    authority = ""
    if scheme and tail.startswith("//"):
        authority, slash, path = tail[2:].partition("/")
        tail = slash + path
        _check_authority(authority)
    if escape := _ESCAPE.search(tail):
        raise ValueError(f'invalid URL escape "{escape[0]}"')
    return SplitResult(scheme, authority.rpartition("@")[2], tail, query, "")


def _split_scheme(text: str) -> tuple[str, str]:
    parts = _SCHEME.fullmatch(text)
    if parts:
        return parts[1].lower(), parts[2]
    head = text.partition("/")[0]
    if ":" in head and not text.startswith("/") and head[0].isascii() and not head[0].isalpha():
        raise ValueError("first path segment in URL cannot contain colon")
    return "", text


def _check_authority(authority: str) -> None:
    host = authority.rpartition("@")[2]
    if not _HOST.fullmatch(host):
        port = host.rpartition(":")[2]
        if ":" in host and not _PORT.fullmatch(f":{port}"):
            raise ValueError(f'invalid port ":{port}" after host')
        raise ValueError("invalid character in host name")


def is_url(text: str) -> bool:
    """Return whether a text is an absolute URL or an absolute path."""
    try:
        split_url(text)
    except ValueError:
        return False
    return True


def _parse(text: str) -> Url:
    try:
        return Url(split_url(text))
    except ValueError as error:
        cause = f'parse "{text}": {error}'
        raise EvaluationError(f"URL parse error during conversion from string: {cause}") from None


def _read_hostname(url: Url) -> str:
    host = url.parts.netloc
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _read_port(url: Url) -> str:
    tail = url.parts.netloc.rpartition("]")[2]
    return tail.partition(":")[2]


def _read_query(url: Url) -> MapValue:
    values: dict[str, list[str]] = {}
    for key, value in parse_qsl(url.parts.query, keep_blank_values=True):
        values.setdefault(key, []).append(value)
    return MapValue({key: (key, tuple(items)) for key, items in values.items()})


URLS: Final[Functions] = index(
    define("url", make_overload(_parse, str)),
    define("isURL", make_overload(is_url, str)),
    define("getScheme", make_overload(lambda url: url.parts.scheme, Url)),
    define("getHost", make_overload(lambda url: url.parts.netloc, Url)),
    define("getHostname", make_overload(_read_hostname, Url)),
    define("getPort", make_overload(_read_port, Url)),
    define("getEscapedPath", make_overload(lambda url: quote(url.parts.path, safe=f"{_PATH}%"), Url)),
    define("getQuery", make_overload(_read_query, Url)),
)
"""Functions and methods by their names."""
