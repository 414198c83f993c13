"""The cookie that holds a browser's token, and which addresses and origins are our own. Pure."""

import re
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import cookie_parser

from page.page_context import ROOT

EMBED: Final = "/embed"
STATIC: Final = f"{ROOT}/static/"
LOGIN, LOGOUT = f"{ROOT}/login", f"{ROOT}/logout"
MAX_TOKEN_CHARACTERS: Final = 3800
"""Browsers keep 4,096 bytes of a cookie, its name and attributes included."""

_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
_HOST: Final = re.compile(r"[A-Za-z0-9.-]+(:\d{1,5})?|\[[0-9A-Fa-f:.]+\](:\d{1,5})?")
_TARGET: Final = re.compile(rf"{ROOT}(/[A-Za-z0-9/._-]*)?(\?[^\s\\]*)?")


def is_page(path: str) -> bool:
    return path == ROOT or path.startswith((ROOT + "/", EMBED + "/"))


def cookie_name(scheme: str) -> str:
    """Over HTTPS with the prefix that browsers take from this very host, and for all of its paths, alone."""
    return "__Host-schedulerlog" if scheme == "https" else "schedulerlog_token"


def token_in_cookie(headers: Headers, scheme: str) -> str | None:
    """The token; None without one, and for a text that can't be one."""
    token = cookie_parser(headers.get("cookie", "")).get(cookie_name(scheme), "")
    return token if is_token(token) else None


def is_token(text: str) -> bool:
    """Can it be a bearer token (RFC 6750)?"""
    return len(text) <= MAX_TOKEN_CHARACTERS and bool(_TOKEN.fullmatch(text))


def set_cookie(token: str, scheme: str) -> str:
    """The header for a cookie that ends with the browser's session; without a token, for none."""
    ends = "" if token else "; Max-Age=0"
    secure = "; Secure" if scheme == "https" else ""
    return f"{cookie_name(scheme)}={token}; Path=/; HttpOnly; SameSite=Strict{secure}{ends}"


def own_origin(headers: Headers, scheme: str) -> str:
    """``scheme://host:port`` as the browser addressed us; empty where the header ``Host`` can't be an address."""
    host = headers.get("host", "")
    return f"{scheme}://{host}" if _HOST.fullmatch(host) else ""


def is_sent_by_us(headers: Headers, scheme: str) -> bool:
    """Was a form sent by a page of ours? Browsers say who sends it; what says nothing is not trusted."""
    if site := headers.get("sec-fetch-site"):
        return site == "same-origin"
    origin = headers.get("origin", "")
    return bool(origin) and origin == own_origin(headers, scheme)


def target(asked: str) -> str:
    """The page to show after the login: one of ours, else the first."""
    return asked if _TARGET.fullmatch(asked) and "//" not in asked.partition("?")[0] else ROOT
