"""The credentials of the control plane: certificates, tokens and kubeconfigs.

They are created once per folder. Components identify themselves to the API server with tokens instead of certificates,
because tokens need no signing and the API server reads them from one file.
"""

import secrets
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml
from cryptography.hazmat.primitives.asymmetric import rsa

from runtime.http.certificate_authority import CLIENT, Authority, to_private_pem

FRONT_PROXY: Final = "front-proxy-client"
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

    @property
    def front_proxy_ca(self) -> Path:
        """The authority of the certificate that the API server shows to aggregated APIs."""
        return self.folder / "front-proxy-ca.crt"

    @property
    def front_proxy_certificate(self) -> Path:
        return self.folder / "front-proxy-client.crt"

    @property
    def front_proxy_key(self) -> Path:
        return self.folder / "front-proxy-client.key"

    @property
    def front_proxy_flags(self) -> list[str]:
        """Flags by which the API server shows aggregated APIs its identity and the caller's, with kubeadm's names."""
        return [
            f"--proxy-client-cert-file={self.front_proxy_certificate}",
            f"--proxy-client-key-file={self.front_proxy_key}",
            f"--requestheader-client-ca-file={self.front_proxy_ca}",
            f"--requestheader-allowed-names={FRONT_PROXY}",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        ]

    def locate_kubeconfig(self, user: str) -> Path:
        """Locate the kubeconfig of a key of ``USERS``; ``write_kubeconfigs`` writes it."""
        return self.folder / f"{user}.kubeconfig"

    def read_token(self, user: str) -> str:
        """Read the bearer token of a key of ``USERS``."""
        rows = [line.split(",") for line in self.tokens.read_text(encoding="ascii").splitlines()]
        return next(row[0] for row in rows if row[2] == user)

    def write(self) -> None:
        """Create all files except the kubeconfigs, unless an earlier run has created them."""
        if self.tokens.exists():
            # An earlier version did not create these.
            if not self.front_proxy_ca.exists():
                self._write_front_proxy()
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        # The tokens in it are worth all rights on the API server.
        self.folder.chmod(0o700)
        authority = Authority.create("schedulerlog control plane")
        self.ca.write_bytes(authority.certificate_pem)
        certificate, key = authority.issue("kube-apiserver", names=("localhost", "kubernetes.default.svc", "127.0.0.1"))
        self.server_certificate.write_bytes(certificate)
        self.server_key.write_bytes(key)
        # RSA of 2048 bits: the API server signs service account tokens with it.
        self.service_account_key.write_bytes(to_private_pem(rsa.generate_private_key(65537, 2048)))
        self._write_front_proxy()
        lines = (f'{secrets.token_hex(16)},{name},{user},"{group}"' for user, (name, group) in USERS.items())
        # Last, because its presence shows that all the others exist.
        self.tokens.write_text("".join(line.replace(',""', "") + "\n" for line in lines), encoding="ascii")

    def _write_front_proxy(self) -> None:
        # An authority of its own, as Kubernetes asks for: who has a certificate of it may name any user.
        authority = Authority.create("front-proxy-ca")
        certificate, key = authority.issue(FRONT_PROXY, usages=CLIENT)
        self.front_proxy_certificate.write_bytes(certificate)
        self.front_proxy_key.write_bytes(key)
        self.front_proxy_ca.write_bytes(authority.certificate_pem)

    def write_kubeconfigs(self, url: str) -> None:
        """Write a kubeconfig for each user; it contains the CA, so that the file can be copied."""
        for user in USERS:
            text = build_kubeconfig(url, self.ca.read_text(encoding="ascii"), self.read_token(user))
            self.locate_kubeconfig(user).write_text(text, encoding="utf-8")


def build_kubeconfig(url: str, ca_pem: str, token: str) -> str:
    """Build a kubeconfig for one server and one bearer token."""
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
