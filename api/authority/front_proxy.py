"""Callers of the aggregated API: the API server shows a certificate of its own and names the caller in headers. Pure.

What Kubernetes publishes about it is in the ConfigMap kube-system/extension-apiserver-authentication.
"""

import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import unquote

import orjson

from api.authority.caller import Caller
from api.authority.certificates import ShownCertificate

_BEGIN: Final = "-----BEGIN CERTIFICATE-----"
_END: Final = "-----END CERTIFICATE-----"
Headers = Sequence[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class FrontProxy:
    """The API server as a proxy: by which certificate it is known, and in which headers it names the caller."""

    authority_pem: str
    roots: frozenset[bytes]
    """The certificates of its authority, in DER form."""
    names: frozenset[str]
    """Which common names its certificate may have; empty: every one."""
    user_headers: tuple[str, ...]
    uid_headers: tuple[str, ...]
    group_headers: tuple[str, ...]
    extra_prefixes: tuple[str, ...]

    @classmethod
    def of(cls, config_map: Mapping[str, str]) -> Self | None:
        """By the data of the ConfigMap; None where the API server is not set up for aggregated APIs.

        Raises ``ValueError``.
        """
        pem = config_map.get("requestheader-client-ca-file", "")
        if not pem:
            return None
        return cls(
            pem,
            roots_in(pem),
            frozenset(_listed(config_map, "allowed-names")),
            _headers(config_map, "username-headers"),
            _headers(config_map, "uid-headers"),
            _headers(config_map, "group-headers"),
            _headers(config_map, "extra-headers-prefix"),
        )

    def caller(self, certificate: ShownCertificate, headers: Headers, now: float) -> Caller | None:
        """Who the headers name; None where they name none, or where the certificate is not the proxy's."""
        name = certificate.common_name
        if certificate.ends_at <= now or not name or (self.names and name not in self.names):
            return None
        users = _values(headers, self.user_headers)
        user = next(filter(None, users), "")
        if not user:
            return None
        uid = next(filter(None, _values(headers, self.uid_headers)), "")
        return Caller(user, uid, tuple(_values(headers, self.group_headers)), self._extra(headers))

    def _extra(self, headers: Headers) -> tuple[tuple[str, tuple[str, ...]], ...]:
        found: dict[str, list[str]] = {}
        for name, value in headers:
            text = name.decode("latin-1").lower()
            for prefix in self.extra_prefixes:
                if text.startswith(prefix):
                    # Keys with characters that no header's name may have, such as a slash, are percent-encoded.
                    found.setdefault(unquote(text.removeprefix(prefix)), []).append(value.decode("latin-1"))
        return tuple((key, tuple(values)) for key, values in sorted(found.items()))


def roots_in(pem: str) -> frozenset[bytes]:
    """The certificates of a PEM file, in DER form. Raises ``ValueError``."""
    parts = pem.split(_END)[:-1]
    return frozenset(ssl.PEM_cert_to_DER_cert(part[part.index(_BEGIN) :] + _END) for part in parts)


def _values(headers: Headers, names: tuple[str, ...]) -> Iterator[str]:
    for wanted in names:
        for name, value in headers:
            if name.decode("latin-1").lower() == wanted:
                yield value.decode("utf-8", "replace")


def _headers(config_map: Mapping[str, str], key: str) -> tuple[str, ...]:
    return tuple(name.lower() for name in _listed(config_map, key))


def _listed(config_map: Mapping[str, str], key: str) -> list[str]:
    """A value of the ConfigMap, which is a JSON list. Raises ``ValueError``."""
    found = orjson.loads(config_map.get(f"requestheader-{key}", "[]"))
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise ValueError(f"requestheader-{key} is not a list of names")
    return found
