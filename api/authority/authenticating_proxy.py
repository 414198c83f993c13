"""Callers that an authenticating proxy, such as oauth2-proxy behind an ingress, names in headers after a login. Pure.

The headers count with the proxy's client certificate alone. A request through it has no other credentials.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from api.authority.credentials import AUTHENTICATED, Caller, PresentedCertificate

OF_KUBERNETES: Final = "system:"
"""Beginning of users and groups that Kubernetes keeps for itself; a login elsewhere gives none of them."""
Headers = Sequence[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class AuthenticatingProxy:
    """Proxy that logs people in: the certificates that it presents, and the headers in which it names the caller."""

    roots: frozenset[bytes]
    """Certificates of its authority, in DER form."""
    names: frozenset[str]
    """Common names that its certificate may have."""
    user_header: str
    groups_header: str
    """Header with groups, separated by commas."""
    prefix: str
    """Text before each user and group, as the API server puts it before those of the same login."""

    def identify_caller(self, certificate: PresentedCertificate, headers: Headers, now: float) -> Caller | None:
        """Parse the caller that the headers name; None if they name none or several, or if the certificate is not the
        proxy's.
        """
        if certificate.ends_at <= now or certificate.common_name not in self.names:
            return None
        users, groups = (_list_values(headers, name) for name in (self.user_header, self.groups_header))
        # A second header may be one that the proxy has passed on from its client.
        if len(users) != 1 or len(groups) > 1 or not users[0]:
            return None
        user = self.prefix + users[0]
        if user.startswith(OF_KUBERNETES):
            return None
        named = [self.prefix + group for text in groups for part in text.split(",") if (group := part.strip())]
        mapped = [group for group in named if not group.startswith(OF_KUBERNETES)]
        return Caller(user, groups=tuple(dict.fromkeys([*mapped, AUTHENTICATED])))


def _list_values(headers: Headers, wanted: str) -> list[str]:
    name = wanted.lower().encode()
    return [value.decode("utf-8", "replace").strip() for key, value in headers if key.lower() == name]
