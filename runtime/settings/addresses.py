"""Addresses as people write them: HOST:PORT, lists of brokers, URLs. Pure; without pydantic, which is slow to import.

No function of this module shows a password: messages show an invalid text without the part before an ``@``, or not at
all.
"""

import re
from collections.abc import Collection
from typing import Final, NamedTuple
from urllib.parse import urlsplit

LOOPBACK: Final = "127.0.0.1"
OTHER_NAME_REFUSAL: Final = "this address is not answered under that name, use 127.0.0.1 or localhost\n"
"""Answer of a server on loopback, with status ``MISDIRECTED``, under a name that ``is_own`` does not accept."""
MISDIRECTED: Final = 421
# ASCII: without it `\d` matches the digits of all scripts, and `int` reads them.
_HOST_PORT: Final = re.compile(
    r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+(?:%\w+)?)\]|(?P<host>[^\s:/@\[\],]+)):(?P<port>\d{1,5})", re.ASCII
)
_PORT: Final = re.compile(r"\d{1,5}", re.ASCII)
# Greedy up to the last `@`: a password may hold an `@` of its own.
_USER_INFO: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)\S*@")
_LAST_PORT: Final = 65535
# As clients write them in their errors: in a URL, as Python's pairs of host and port, HOST:PORT, or only an IP address.
_ANY_ADDRESS: Final = re.compile(
    r"""(?<=://)[^\s/'")\]]+"""
    r"""|\((?:'[^']*'|[^\s(),]+), \d{1,5}(?:, [^()]*)?\)"""
    r"""|(?<![\w.:-])(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?):\d{2,5}(?!\w|:\d)"""
    r"""|(?<![\w:])[0-9A-Fa-f:]*::[0-9A-Fa-f:]+(?![\w:])"""
    r"""|(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])""",
    re.ASCII,
)


class HostPort(NamedTuple):
    host: str
    """Name, IPv4 or IPv6 address, the latter without brackets."""
    port: int

    @property
    def is_loopback(self) -> bool:
        """Tell whether the host stands for this machine only."""
        # Commands that start at once import this module.
        from ipaddress import ip_address

        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_host_port(text: str, example: str = "127.0.0.1:9092") -> HostPort:
    """Parse the address of a service. Raises ``ValueError``, whose message shows ``example``."""
    address = _parse(text)
    if address is None or address.port == 0:
        raise ValueError(_describe_mistake(text, "HOST:PORT", example))
    return address


def parse_listen_address(text: str, example: str = "127.0.0.1:8080") -> HostPort:
    """Parse an address to listen on; a port without a host means loopback, and port 0 a free port. Raises
    ``ValueError``."""
    address = HostPort(LOOPBACK, int(text)) if _PORT.fullmatch(text.strip()) else _parse(text)
    if address is None or address.port > _LAST_PORT:
        raise ValueError(_describe_mistake(text, "HOST:PORT", example))
    return address


def parse_bootstrap_servers(text: str) -> str:
    """Parse Kafka's addresses, ``HOST:PORT[,HOST:PORT…]``, without spaces. Raises ``ValueError``."""
    return ",".join(str(parse_host_port(server)) for server in text.split(","))


def parse_url(text: str, example: str = "http://127.0.0.1:9200") -> str:
    """Parse a base URL of HTTP and strip the slash at its end. Raises ``ValueError``, which does not show the text."""
    try:
        parts = urlsplit(text)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is not a number, a bracket that is not closed
        is_url = False
    if not is_url or re.search(r"\s", text):
        # The text may contain a user and a password, wherever the mistake is.
        raise ValueError(f"not a URL: write for example {example}")
    if parts.query or parts.fragment or "?" in text or "#" in text:
        # Messages and logs show the URL, and a query often is a secret.
        raise ValueError(f"has a query (?) or a fragment (#), which no request would send: write for example {example}")
    # Paths that begin with a slash are appended to it.
    return text.rstrip("/")


def is_own(host: str, names: Collection[str]) -> bool:
    """Tell whether the header ``Host`` is an address, `localhost` or one of these names.

    A web page may point its own name to loopback (DNS rebinding), and is refused by that.
    """
    from ipaddress import ip_address

    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or name in names or bool(ip_address(name))
    except ValueError:
        return False


def without_user_info(text: str) -> str:
    """Return the text without the user and password of every URL in it."""
    return _USER_INFO.sub(r"\1", text)


def without_addresses(text: str) -> str:
    """Return the text of an error with ``ADDRESS`` instead of hosts and ports, for readers who are not operators."""
    return _ANY_ADDRESS.sub("ADDRESS", text)


def _parse(text: str) -> HostPort | None:
    match = _HOST_PORT.fullmatch(text.strip())
    if match is None or int(match["port"]) > _LAST_PORT:
        return None
    return HostPort(match["ipv6"] or match["host"], int(match["port"]))


def _describe_mistake(text: str, form: str, example: str) -> str:
    # The part before an `@` may be a password: somebody may have given a URL instead of HOST:PORT.
    return f"{text.strip().rpartition('@')[2]!r} is not {form}: write for example {example}"
