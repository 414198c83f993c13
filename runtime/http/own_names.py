"""Names under which a server on loopback answers: a web page may point its name there (DNS rebinding)."""

from collections.abc import Collection
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

REFUSAL: Final = "this address is not answered under that name, use 127.0.0.1 or localhost\n"
MISDIRECTED: Final = 421


def is_own(host: str, names: Collection[str]) -> bool:
    """Tell whether the header ``Host`` is an address, `localhost` or one of these names, which no web page has."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or name in names or bool(ip_address(name))
    except ValueError:
        return False
