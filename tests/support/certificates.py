"""Certificates for 127.0.0.1, made on the spot: self-signed ones, and those of an authority."""

import datetime
import ipaddress
import os
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from runtime.http.server_tls import CertificatePair


def a_pair(folder: Path, name: str = "one", passphrase: bytes = b"") -> CertificatePair:
    """`tls.crt` and `tls.key` in the folder; the certificate's common name is `name`."""
    folder.mkdir(parents=True, exist_ok=True)
    key = ec.generate_private_key(ec.SECP256R1())
    locked = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    pair = CertificatePair(folder / "tls.crt", folder / "tls.key")
    pair.certificate.write_bytes(_encode_certificate(_build_certificate(key, name), key))
    pair.key.write_bytes(_encode_key(key, locked))
    return pair


class Authority:
    """Signs certificates; ``ca_file`` is its own."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._name, self._key = folder, name, ec.generate_private_key(ec.SECP256R1())
        self.ca_file = folder / "ca.crt"
        constraint = x509.BasicConstraints(ca=True, path_length=0)
        self.ca_file.write_bytes(
            _encode_certificate(_build_certificate(self._key, name).add_extension(constraint, critical=True), self._key)
        )

    def issue(self, name: str, *, days: int = 1) -> CertificatePair:
        """Issue a pair for a server at 127.0.0.1, and for a client of this name; of -1 days: expired."""
        key = ec.generate_private_key(ec.SECP256R1())
        pair = CertificatePair(self._folder / f"{name}.crt", self._folder / f"{name}.key")
        pair.certificate.write_bytes(
            _encode_certificate(_build_certificate(key, name, issuer=self._name, days=days), self._key)
        )
        pair.key.write_bytes(_encode_key(key, serialization.NoEncryption()))
        return pair


def _encode_key(key: ec.EllipticCurvePrivateKey, locked: serialization.KeySerializationEncryption) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked)


def _encode_certificate(builder: x509.CertificateBuilder, signed_by: ec.EllipticCurvePrivateKey) -> bytes:
    return builder.sign(signed_by, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _build_certificate(
    key: ec.EllipticCurvePrivateKey, name: str, *, issuer: str = "", days: int = 1
) -> x509.CertificateBuilder:
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    signer = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, issuer or name)])
    ends = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(ends - datetime.timedelta(days=2))
        .not_valid_after(ends)
        .add_extension(address, critical=False)
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
