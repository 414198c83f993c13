"""A private certificate authority, which signs certificates of servers and clients."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME: Final = timedelta(days=365)
SERVER: Final = (ExtendedKeyUsageOID.SERVER_AUTH,)
CLIENT: Final = (ExtendedKeyUsageOID.CLIENT_AUTH,)
LOOPBACK: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Authority:
    """Certificate and key of the authority."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def create(cls, name: str, lifetime: timedelta = LIFETIME) -> "Authority":
        """Create a new key and its self-signed certificate."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _to_name(name)
        builder = _begin_certificate(subject, subject, key.public_key(), lifetime).add_extension(
            # It signs servers and clients, no further authorities.
            x509.BasicConstraints(ca=True, path_length=0),
            critical=True,
        )
        usage = x509.KeyUsage(
            digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
            key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
        )  # fmt: skip
        identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        signed = builder.add_extension(usage, critical=True).add_extension(identifier, critical=False)
        return cls(signed.sign(key, hashes.SHA256()), key)

    @property
    def certificate_pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    def issue(
        self,
        name: str,
        names: tuple[str, ...] = ("localhost", LOOPBACK),
        usages: tuple[x509.ObjectIdentifier, ...] = SERVER,
        lifetime: timedelta = LIFETIME,
    ) -> tuple[bytes, bytes]:
        """Issue a certificate and key (PEM) for a server of these names and addresses, or for other ``usages``."""
        key = ec.generate_private_key(ec.SECP256R1())
        alternatives = x509.SubjectAlternativeName([_to_alternative_name(host) for host in names])
        # Python 3.13 and later refuse a certificate without it (VERIFY_X509_STRICT).
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        certificate = (
            _begin_certificate(_to_name(name), self.certificate.subject, key.public_key(), lifetime)
            .add_extension(alternatives, critical=False)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(issuer, critical=False)
            .sign(self.key, hashes.SHA256())
        )
        return certificate.public_bytes(Encoding.PEM), to_private_pem(key)


def _to_alternative_name(name: str) -> x509.GeneralName:
    # As an address: clients do not compare addresses with names.
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _begin_certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, lifetime: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        # The clock of a container that was paused may be behind.
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + lifetime)
    )


def _to_name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def to_private_pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
