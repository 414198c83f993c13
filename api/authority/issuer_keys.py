"""Keys by which the cluster signs tokens of service accounts, as its API server publishes them.

A token that the cluster has signed for us does not count among the guesses of an address: guesses can't keep its holder
out. The signature identifies nobody: the API server reviews the token, which may belong to a deleted account.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final, Protocol

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256, SHA384, SHA512, HashAlgorithm

from api.authority.credentials import read_claims, read_expiry
from api.http.sealing import decode_base64, encode_base64
from runtime.kubernetes.errors import KubeApiError
from runtime.log_once import LoggedProblem

log = logging.getLogger(__name__)

KEY_SET: Final = "/openid/v1/jwks"
READ_SECONDS: Final = 60.0
"""Interval of reading the keys: the API server publishes a new one before it signs with it."""
_CURVES: Final[Mapping[str, tuple[ec.EllipticCurve, HashAlgorithm]]] = {
    "P-256": (ec.SECP256R1(), SHA256()),
    "P-384": (ec.SECP384R1(), SHA384()),
    "P-521": (ec.SECP521R1(), SHA512()),
}
PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey


class KeySets(Protocol):
    """Reader of documents of the API server."""

    async def get(self, path: str) -> Mapping[str, Any]:
        """Read a document. Raises ``KubeApiError``."""


class IssuerKeys:
    """Keys in force; none until they are read, and then no token counts as signed."""

    def __init__(self, audience: str, key_sets: KeySets) -> None:
        self._audience, self._key_sets = audience, key_sets
        self._keys: list[PublicKey] = []
        self._trouble = LoggedProblem(
            lambda text: log.warning("tokens of the cluster count as guesses where they are invalid: %s", text),
            lambda _: log.info("the keys of the cluster's tokens are read"),
        )

    async def follow(self) -> None:
        """Read the keys periodically, until cancelled."""
        while True:
            await self.read()
            await asyncio.sleep(READ_SECONDS)

    async def read(self) -> None:
        """Read the keys; after a problem keep the previous ones and log why."""
        try:
            document = await self._key_sets.get(KEY_SET)
            self._keys = [key for entry in document["keys"] if (key := parse_key(entry))]
            self._trouble.note("" if self._keys else f"{KEY_SET} has no key of a known type")
        except (KubeApiError, KeyError, TypeError, ValueError) as error:
            self._trouble.note(f"{KEY_SET}: {error}")

    def has_signed(self, token: str, now: float) -> bool:
        """Tell whether the cluster has signed the token for our audience, and it has not ended at ``now``."""
        if not is_for_audience(token, self._audience) or read_expiry(token) <= now:
            return False
        signed, _, text = token.rpartition(".")
        signature = decode_base64(text)
        # In one spelling only: each of the others would be a new token, and cost a review of its own.
        if signature is None or encode_base64(signature) != text:
            return False
        return any(_verify(key, signature, signed.encode()) for key in self._keys)


def is_for_audience(token: str, audience: str) -> bool:
    """Tell whether the token names the audience in its claims, with whatever signature."""
    named = read_claims(token).get("aud")
    return audience in named if isinstance(named, list) else named == audience


def parse_key(entry: Mapping[str, Any]) -> PublicKey | None:
    """Parse a key of a JSON Web Key Set (RFC 7517); None for a type that Kubernetes does not sign with.

    Raises ``KeyError`` and ``ValueError``.
    """
    if entry["kty"] == "RSA":
        return rsa.RSAPublicNumbers(_to_number(entry["e"]), _to_number(entry["n"])).public_key()
    if entry["kty"] == "EC" and entry["crv"] in _CURVES:
        curve, _ = _CURVES[entry["crv"]]
        return ec.EllipticCurvePublicNumbers(_to_number(entry["x"]), _to_number(entry["y"]), curve).public_key()
    return None


def _to_number(text: str) -> int:
    return int.from_bytes(decode_base64(text) or b"", "big")


def _verify(key: PublicKey, signature: bytes, signed: bytes) -> bool:
    try:
        if isinstance(key, rsa.RSAPublicKey):
            key.verify(signature, signed, padding.PKCS1v15(), SHA256())
        else:
            _, algorithm = next(pair for pair in _CURVES.values() if pair[0].key_size == key.curve.key_size)
            half = len(signature) // 2
            numbers = (int.from_bytes(part, "big") for part in (signature[:half], signature[half:]))
            key.verify(encode_dss_signature(*numbers), signed, ec.ECDSA(algorithm))
    except InvalidSignature:
        return False
    return True
