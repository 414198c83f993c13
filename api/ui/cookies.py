"""The cookie with a browser's token, and the addresses and origins of this API. Pure."""

import re
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import cookie_parser

from page.page_context import ROOT

EMBED: Final = "/embed"
STATIC: Final = f"{ROOT}/static/"
LOGIN, LOGOUT = f"{ROOT}/login", f"{ROOT}/logout"
MAX_TOKEN_CHARACTERS: Final = 3800
"""Maximum length of a token: browsers keep 4,096 bytes of a cookie, including its name and attributes."""

_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
_HOST: Final = re.compile(r"[A-Za-z0-9.-]+(:\d{1,5})?|\[[0-9A-Fa-f:.]+\](:\d{1,5})?")
_TARGET: Final = re.compile(rf"{ROOT}(/[A-Za-z0-9/._-]*)?(\?[^\s\\]*)?")


def is_page(path: str) -> bool:
    return path == ROOT or path.startswith((ROOT + "/", EMBED + "/"))


def choose_cookie_name(scheme: str) -> str:
    """Choose the name: over HTTPS with the prefix that browsers accept only from this host, for all of its paths."""
    return "__Host-schedulerlog" if scheme == "https" else "schedulerlog_token"


def parse_token_cookie(headers: Headers, scheme: str) -> str | None:
    """Parse the token; None without one, and for a text that can't be one."""
    token = cookie_parser(headers.get("cookie", "")).get(choose_cookie_name(scheme), "")
    return token if is_token(token) else None


def is_token(text: str) -> bool:
    """Tell whether the text can be a bearer token (RFC 6750)."""
    return len(text) <= MAX_TOKEN_CHARACTERS and bool(_TOKEN.fullmatch(text))


def set_cookie(token: str, scheme: str) -> str:
    """Set a cookie that ends with the browser's session, as a header; without a token, delete it."""
    ends = "" if token else "; Max-Age=0"
    secure = "; Secure" if scheme == "https" else ""
    return f"{choose_cookie_name(scheme)}={token}; Path=/; HttpOnly; SameSite=Strict{secure}{ends}"


def derive_own_origin(headers: Headers, scheme: str) -> str:
    """Derive ``scheme://host:port`` as the browser addressed us; empty if the header ``Host`` is no address."""
    host = headers.get("host", "")
    return f"{scheme}://{host}" if _HOST.fullmatch(host) else ""


def is_sent_by_us(headers: Headers, scheme: str) -> bool:
    """Tell whether a page of ours sent the form. Browsers say who sends it; a form without a sender is not trusted."""
    if site := headers.get("sec-fetch-site"):
        return site == "same-origin"
    origin = headers.get("origin", "")
    return bool(origin) and origin == derive_own_origin(headers, scheme)


def choose_target(path: str) -> str:
    """Choose the page after the login: the requested one if it is ours, or else the first page."""
    return path if _TARGET.fullmatch(path) and "//" not in path.partition("?")[0] else ROOT
