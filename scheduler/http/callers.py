"""Who may ask for decisions: filter and bind, which move pods."""

from ipaddress import IPv6Address, ip_address
from typing import Final, NamedTuple

from starlette.requests import Request

from scheduler.http.server import KNOWN_CLIENT


class AllowedCallers(NamedTuple):
    """Those with a client certificate, those on this machine or in this pod, both, or everybody who reaches us."""

    have_certificate: bool = False
    are_on_loopback: bool = False

    def refusal(self, request: Request) -> str:
        """Why the caller of this request is none of them, and what to do; empty where it is one."""
        if self.have_certificate and KNOWN_CLIENT not in request.scope.get("extensions", {}):
            return "show a client certificate of the authority in --client-ca-file"
        if self.are_on_loopback and not _is_on_loopback(request.client.host if request.client else ""):
            return "call from the pod of this process by 127.0.0.1: it runs with --loopback-callers-only"
        return ""


EVERYBODY: Final = AllowedCallers()


def _is_on_loopback(host: str) -> bool:
    try:
        address = ip_address(host)
    except ValueError:
        return False
    # What an IPv4 caller of a socket for both is called.
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback
