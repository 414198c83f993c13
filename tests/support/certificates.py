"""Self-signed certificates for 127.0.0.1, made on the spot."""

import datetime
import ipaddress
import os
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from process.server_tls import CertificatePair


def a_pair(folder: Path, name: str = "one", passphrase: bytes = b"") -> CertificatePair:
    """`tls.crt` and `tls.key` in the folder; the certificate's common name is `name`."""
    folder.mkdir(parents=True, exist_ok=True)
    key = ec.generate_private_key(ec.SECP256R1())
    locked = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    pair = CertificatePair(folder / "tls.crt", folder / "tls.key")
    pair.certificate.write_bytes(_certificate(key, name).public_bytes(serialization.Encoding.PEM))
    pair.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked))
    return pair


def _certificate(key: ec.EllipticCurvePrivateKey, name: str) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(address, critical=False)
        .sign(key, hashes.SHA256())
    )


class Secret:
    """A folder as the kubelet mounts a secret: the files are links through `..data`, which is swapped as a whole."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder, self._versions = folder, 0
        self.swap("one")
        for name in ("tls.crt", "tls.key"):
            (folder / name).symlink_to(Path("..data") / name)
        self.pair = CertificatePair(folder / "tls.crt", folder / "tls.key")

    def swap(self, name: str) -> None:
        """Put a new pair in place of the old one."""
        self._versions += 1
        version = f"..version{self._versions}"
        a_pair(self._folder / version, name)
        (self._folder / "..data_tmp").symlink_to(version)
        os.replace(self._folder / "..data_tmp", self._folder / "..data")  # noqa: PTH105 - of the link itself
