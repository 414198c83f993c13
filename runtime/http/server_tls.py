"""HTTPS with a certificate that may be replaced while connections are open.

A new pair is used for every handshake from then on; open connections keep theirs. Symlinks are followed at each look,
so the swap of a Kubernetes secret, whose folder is replaced as a whole, is noticed too.
"""

import asyncio
import hashlib
import logging
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from runtime.log_once import LoggedProblem

log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 2.0
"""Seconds between two readings of the files; two small files cost some 50 us."""

_MARKS: Final = {"certificate": b"-----BEGIN CERTIFICATE-----", "private key": b"PRIVATE KEY-----"}
_LOCKED: Final = (b"BEGIN ENCRYPTED PRIVATE KEY", b"Proc-Type: 4,ENCRYPTED")


class BrokenPairError(ValueError):
    """Certificate and key can't be used: one line that names the file and says what to do."""


@dataclass(frozen=True, slots=True)
class CertificatePair:
    """PEM files: the certificate with its chain behind it, and its private key without a passphrase."""

    certificate: Path
    key: Path
    flags: tuple[str, ...] = ("--cert-file", "--key-file", "--client-ca-file")
    """Flags that name the files, for messages."""
    client_ca: Path | None = None
    """Authority of the certificates by which clients may identify themselves; a client without one is admitted."""
    asks_clients: bool = False
    """Ask clients for certificates also without ``client_ca``: of authorities that ``Certificates.trust`` adds."""
    proxy_ca: Path | None = None
    """Authority of a proxy that names its clients in headers; its flag is the fourth of ``flags``."""

    def read_contents(self) -> tuple[bytes, ...]:
        """Read both files and the authorities of clients, empty where none is named. Raises `BrokenPairError` where one
        can't be read or holds something else.
        """
        pair = (
            _read_pem(self.flags[0], self.certificate, "certificate"),
            _read_pem(self.flags[1], self.key, "private key"),
        )
        authorities = (_read_pem(flag, path, "certificate") if path else b"" for flag, path in self._authorities)
        return (*pair, *authorities)

    @property
    def _authorities(self) -> Sequence[tuple[str, Path | None]]:
        """Flag and file of each authority of clients."""
        return list(zip(self.flags[2:], (self.client_ca, self.proxy_ca), strict=False))

    def build_context(self, also_trusted: str = "") -> ssl.SSLContext:
        """Build the server's TLS context. ``also_trusted``: further authorities of clients, in PEM form. Raises
        `BrokenPairError`."""
        _, key, *authorities = self.read_contents()
        if any(mark in key for mark in _LOCKED):
            raise BrokenPairError(
                f"{self.flags[1]}: {self.key} needs a passphrase: write it without (openssl pkey -in …)"
            )
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            context.load_cert_chain(self.certificate, self.key)
        except (ssl.SSLError, OSError) as error:
            raise BrokenPairError(self._explain_failure(error)) from None
        if any(authorities) or self.asks_clients:
            pems = [pem.decode("latin-1") for pem in authorities]
            self._ask_for_client_certificates(context, [*pems, also_trusted])
        return context

    def _ask_for_client_certificates(self, context: ssl.SSLContext, pems: Sequence[str]) -> None:
        sources = [*(f"{flag}: {path}" for flag, path in self._authorities), "a further authority of clients"]
        for source, pem in zip(sources, pems, strict=True):
            try:
                if pem:
                    context.load_verify_locations(cadata=pem)
            except (ssl.SSLError, ValueError) as error:
                reason = getattr(error, "reason", None) or str(error)
                raise BrokenPairError(f"{source} can't be used: {reason}") from None
        context.verify_mode = ssl.CERT_OPTIONAL
        # A resumed session keeps the certificate of its first handshake, also when its authority is no longer trusted.
        # Sessions of TLS 1.2 can't be switched off here.
        context.minimum_version, context.num_tickets = ssl.TLSVersion.TLSv1_3, 0

    def _explain_failure(self, error: OSError) -> str:
        reason = getattr(error, "reason", None) or error.strerror or str(error)
        if reason == "KEY_VALUES_MISMATCH":
            return f"{self.flags[1]}: {self.key} is not the key of the certificate in {self.certificate}"
        return f"{self.flags[0]} {self.certificate}, {self.flags[1]} {self.key}: can't be used: {reason}"


def _read_pem(flag: str, path: Path, what: str) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BrokenPairError(f"{flag}: {path} can't be read: {error.strerror or error}") from None
    if _MARKS[what] not in content:
        raise BrokenPairError(f"{flag}: {path} holds no {what} in PEM form")
    return content


class Certificates:
    """Certificate pair in force. `context` stays the same object for the life of a listener, whatever it loads."""

    def __init__(self, pair: CertificatePair) -> None:
        """Load the certificate pair. Raises `BrokenPairError`."""
        self._pair = pair
        self._also_trusted = ""
        self._contents = pair.read_contents()
        self._current = pair.build_context()
        # A context of its own for the listener: `_hand_over` replaces it at each handshake.
        self.context = pair.build_context()
        self.context.sni_callback = self._hand_over
        self._trouble = LoggedProblem(partial(log.warning, "%s; the certificate that was loaded before stays in force"))
        """Reason why the present files are not in force; empty while they are."""
        self.reloads = 0

    def _hand_over(self, connection: ssl.SSLObject, _name: str, _context: ssl.SSLContext) -> None:
        # OpenSSL asks at every handshake, also where the client names no server. Loading into the context in use
        # instead would leave it with half of a broken pair.
        connection.context = self._current

    @property
    def problem(self) -> str:
        """Reason why the present files are not in force; empty when they are."""
        return self._trouble.text

    @property
    def client_ca(self) -> str:
        """The authority of clients in force, in PEM form; empty without one."""
        return self._contents[2].decode("latin-1")

    @property
    def proxy_ca(self) -> str:
        """The authority in force of the proxy that names its clients, in PEM form; empty without one."""
        return b"".join(self._contents[3:]).decode("latin-1")

    @property
    def key_digest(self) -> bytes:
        """Digest of the private key in force: a secret that all servers with this pair share."""
        return hashlib.blake2b(self._contents[1], digest_size=32, person=b"schedulerlog").digest()

    def trust(self, authorities: str) -> None:
        """Accept client certificates of these authorities too, in PEM form; they replace those of the previous call.

        Raises `BrokenPairError`. The pair was made with ``asks_clients``.
        """
        self._current, self._also_trusted = self._pair.build_context(authorities), authorities

    def reload(self) -> None:
        """Take the files as they are now, or keep what is in force and say why."""
        try:
            contents = self._pair.read_contents()
            # Compared by content: a secret's folder is replaced as a whole, so times and inodes change without it.
            if contents == self._contents:
                self._trouble.note("")
                return
            self._current = self._pair.build_context(self._also_trusted)
        except BrokenPairError as error:
            self._trouble.note(str(error))
            return
        self._contents, self.reloads = contents, self.reloads + 1
        log.info("serving the new certificate in %s", self._pair.certificate)
        self._trouble.note("")

    async def run(self) -> None:
        """Reload the files when they change, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.reload()
