"""Callers of the aggregated API: the API server presents its certificate and names the caller in headers. Pure.

Kubernetes publishes how in the ConfigMap kube-system/extension-apiserver-authentication.
"""

import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Self
from urllib.parse import unquote

import orjson

from api.authority.credentials import Caller, PresentedCertificate

_BEGIN: Final = "-----BEGIN CERTIFICATE-----"
_END: Final = "-----END CERTIFICATE-----"
Headers = Sequence[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class FrontProxy:
    """API server as a proxy: the certificate that it presents, and the headers in which it names the caller."""

    authority_pem: str
    roots: frozenset[bytes]
    """Certificates of its authority, in DER form."""
    names: frozenset[str]
    """Common names that its certificate may have; empty: any."""
    user_headers: tuple[str, ...]
    uid_headers: tuple[str, ...]
    group_headers: tuple[str, ...]
    extra_prefixes: tuple[str, ...]

    @classmethod
    def from_config_map(cls, config_map: Mapping[str, str]) -> Self | None:
        """Parse the data of the ConfigMap; None if the API server is not set up for aggregated APIs.

        Raises ``ValueError``.
        """
        pem = config_map.get("requestheader-client-ca-file", "")
        if not pem:
            return None
        return cls(
            pem,
            parse_roots(pem),
            frozenset(_parse_list(config_map, "allowed-names")),
            _parse_headers(config_map, "username-headers"),
            _parse_headers(config_map, "uid-headers"),
            _parse_headers(config_map, "group-headers"),
            _parse_headers(config_map, "extra-headers-prefix"),
        )

    def identify_caller(self, certificate: PresentedCertificate, headers: Headers, now: float) -> Caller | None:
        """Parse the caller that the headers name; None if they name none, or if the certificate is not the proxy's."""
        name = certificate.common_name
        if certificate.ends_at <= now or not name or (self.names and name not in self.names):
            return None
        users = _iterate_values(headers, self.user_headers)
        user = next(filter(None, users), "")
        if not user:
            return None
        uid = next(filter(None, _iterate_values(headers, self.uid_headers)), "")
        return Caller(user, uid, tuple(_iterate_values(headers, self.group_headers)), self._collect_extra(headers))

    def _collect_extra(self, headers: Headers) -> tuple[tuple[str, tuple[str, ...]], ...]:
        extra: dict[str, list[str]] = {}
        for name, value in headers:
            text = name.decode("latin-1").lower()
            for prefix in self.extra_prefixes:
                if text.startswith(prefix):
                    # Keys with characters that no header's name may have, such as a slash, are percent-encoded.
                    extra.setdefault(unquote(text.removeprefix(prefix)), []).append(value.decode("latin-1"))
        return tuple((key, tuple(values)) for key, values in sorted(extra.items()))


@lru_cache(maxsize=8)
def parse_roots(pem: str) -> frozenset[bytes]:
    """Parse the certificates of a PEM file into DER form. Raises ``ValueError``."""
    parts = pem.split(_END)[:-1]
    return frozenset(ssl.PEM_cert_to_DER_cert(part[part.index(_BEGIN) :] + _END) for part in parts)


def _iterate_values(headers: Headers, names: tuple[str, ...]) -> Iterator[str]:
    for wanted in names:
        for name, value in headers:
            if name.decode("latin-1").lower() == wanted:
                yield value.decode("utf-8", "replace")


def _parse_headers(config_map: Mapping[str, str], key: str) -> tuple[str, ...]:
    return tuple(name.lower() for name in _parse_list(config_map, key))


def _parse_list(config_map: Mapping[str, str], key: str) -> list[str]:
    """Parse a value of the ConfigMap, which is a JSON list. Raises ``ValueError``."""
    names = orjson.loads(config_map.get(f"requestheader-{key}", "[]"))
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"requestheader-{key} is not a list of names")
    return names
