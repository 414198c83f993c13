"""Under which names a server on loopback is asked: a page of the web may have its name lead there (DNS rebinding)."""

from collections.abc import Collection
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

REFUSAL: Final = "this address is not answered under that name, use 127.0.0.1 or localhost\n"
MISDIRECTED: Final = 421


def is_own(host: str, names: Collection[str]) -> bool:
    """Tell whether the header ``Host`` is an address, `localhost` or one of these names: no page of the web has such a
    name."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or name in names or bool(ip_address(name))
    except ValueError:
        return False
