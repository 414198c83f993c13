"""The credentials of the control plane: certificate authority, API server certificate, tokens and kubeconfigs.

They are created once per folder. Components identify themselves to the API server with tokens instead of certificates,
because tokens need no signing and the API server reads them from one file.
"""

import secrets
from base64 import b64encode
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME: Final = timedelta(days=365)
SERVER: Final = (ExtendedKeyUsageOID.SERVER_AUTH,)
CLIENT: Final = (ExtendedKeyUsageOID.CLIENT_AUTH,)
# Name at the API server, and the group that gives it its rights.
USERS: Final = {
    # RBAC binds this group to cluster-admin before any role exists; the other two users have roles that the API server
    # creates for their names.
    "admin": ("admin", "system:masters"),
    "scheduler": ("system:kube-scheduler", ""),
    "controller-manager": ("system:kube-controller-manager", ""),
}


@dataclass(frozen=True, slots=True)
class Credentials:
    """The files of a folder; ``write`` creates those that are missing."""

    folder: Path

    @property
    def ca(self) -> Path:
        return self.folder / "ca.crt"

    @property
    def server_certificate(self) -> Path:
        return self.folder / "apiserver.crt"

    @property
    def server_key(self) -> Path:
        return self.folder / "apiserver.key"

    @property
    def service_account_key(self) -> Path:
        return self.folder / "service-account.key"

    @property
    def tokens(self) -> Path:
        """A line for each user, in the format of the API server's ``--token-auth-file``."""
        return self.folder / "tokens.csv"

    def kubeconfig(self, user: str) -> Path:
        """The kubeconfig of a key of ``USERS``; ``write_kubeconfigs`` writes it."""
        return self.folder / f"{user}.kubeconfig"

    def token(self, user: str) -> str:
        """The bearer token of a key of ``USERS``."""
        rows = [line.split(",") for line in self.tokens.read_text(encoding="ascii").splitlines()]
        return next(row[0] for row in rows if row[2] == user)

    def write(self) -> None:
        """Create all files except the kubeconfigs, unless an earlier run has created them."""
        if self.tokens.exists():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        # The tokens in it are worth all rights on the API server.
        self.folder.chmod(0o700)
        authority = Authority.new("schedulerlog control plane")
        self.ca.write_bytes(authority.certificate_pem)
        certificate, key = authority.issue("kube-apiserver", dns_names=("localhost", "kubernetes.default.svc"))
        self.server_certificate.write_bytes(certificate)
        self.server_key.write_bytes(key)
        # RSA of 2048 bits: the API server signs service account tokens with it.
        self.service_account_key.write_bytes(_private_pem(rsa.generate_private_key(65537, 2048)))
        lines = (f'{secrets.token_hex(16)},{name},{user},"{group}"' for user, (name, group) in USERS.items())
        # Last, because its presence shows that all the others exist.
        self.tokens.write_text("".join(line.replace(',""', "") + "\n" for line in lines), encoding="ascii")

    def write_kubeconfigs(self, url: str) -> None:
        """Write a kubeconfig for each user; it contains the CA, so that the file can be copied."""
        for user in USERS:
            text = kubeconfig(url, self.ca.read_text(encoding="ascii"), self.token(user))
            self.kubeconfig(user).write_text(text, encoding="utf-8")


def kubeconfig(url: str, ca_pem: str, token: str) -> str:
    """A kubeconfig for one server and one bearer token."""
    cluster = {"server": url, "certificate-authority-data": b64encode(ca_pem.encode()).decode()}
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "control-plane", "cluster": cluster}],
            "users": [{"name": "user", "user": {"token": token}}],
            "contexts": [{"name": "control-plane", "context": {"cluster": "control-plane", "user": "user"}}],
            "current-context": "control-plane",
        }
    )


@dataclass(frozen=True, slots=True)
class Authority:
    """A private certificate authority: signs certificates of servers on this machine, also for tests."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def new(cls, name: str) -> "Authority":
        """A new key and its self-signed certificate."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(name)
        builder = _builder(subject, subject, key.public_key()).add_extension(
            # It signs servers only, no further authorities.
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
        self, name: str, dns_names: tuple[str, ...] = ("localhost",), usages: tuple[x509.ObjectIdentifier, ...] = SERVER
    ) -> tuple[bytes, bytes]:
        """A new certificate and key (PEM) for a server at 127.0.0.1 and these names, or for other ``usages``."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.DNSName(each) for each in dns_names]
        # Clients connect to 127.0.0.1, which must stand there as an address: names are not compared with addresses.
        alternatives = x509.SubjectAlternativeName([*names, x509.IPAddress(ip_address("127.0.0.1"))])
        # Python 3.13 and later refuse a certificate without it (VERIFY_X509_STRICT).
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        certificate = (
            _builder(_name(name), self.certificate.subject, key.public_key())
            .add_extension(alternatives, critical=False)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(issuer, critical=False)
            .sign(self.key, hashes.SHA256())
        )
        return certificate.public_bytes(Encoding.PEM), _private_pem(key)


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        # The clock of a container that was paused may be behind.
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + LIFETIME)
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _private_pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
