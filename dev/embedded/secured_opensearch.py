"""OpenSearch with its security plugin: TLS on both of its ports, users by password or certificate, roles.

The plugin is published for few versions, so this node is an older one than ``opensearch`` runs. Its users, roles and
mappings are made over its API as its administrator, whom it knows by a certificate.
"""

import os
import ssl
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import httpx
from rich.console import Console

from dev.embedded.backends import PORT_ATTEMPTS
from dev.embedded.errors import PortTakenError
from dev.embedded.installed import install_jvms
from dev.embedded.jvm import Jvm, read_settings
from dev.embedded.lock import ServerKind
from dev.embedded.opensearch import OpenSearchNode
from dev.embedded.ports import OPENSEARCH_PORTS, find_free_port
from dev.embedded.process import ParentWatch
from dev.embedded.progress import create_progress
from runtime.http.certificate_authority import CLIENT, SERVER, Authority

PLUGIN: Final = "org.opensearch.security.OpenSearchSecurityPlugin"
CONFIGURATION: Final = """\
plugins.security.ssl.transport.pemcert_filepath: node.crt
plugins.security.ssl.transport.pemkey_filepath: node.key
plugins.security.ssl.transport.pemtrustedcas_filepath: ca.crt
plugins.security.ssl.http.enabled: true
plugins.security.ssl.http.pemcert_filepath: node.crt
plugins.security.ssl.http.pemkey_filepath: node.key
plugins.security.ssl.http.pemtrustedcas_filepath: ca.crt
plugins.security.ssl.http.clientauth_mode: OPTIONAL
plugins.security.ssl_cert_reload_enabled: true
plugins.security.ssl.http.enforce_cert_reload_dn_verification: false
plugins.security.nodes_dn: ["CN=node"]
plugins.security.authcz.admin_dn: ["CN=administrator"]
plugins.security.restapi.roles_enabled: ["all_access"]
plugins.security.allow_default_init_securityindex: true
plugins.security.audit.type: noop
# The fewest: as many as in production take a third of a second for each password.
plugins.security.password.hashing.bcrypt.rounds: 4
"""
AUTHENTICATION: Final = """\
_meta: {type: config, config_version: 2}
config:
  dynamic:
    http: {anonymous_auth_enabled: false}
    authc:
      by_certificate:
        order: 0
        http_enabled: true
        http_authenticator: {type: clientcert, challenge: false, config: {username_attribute: cn}}
        authentication_backend: {type: noop}
      by_password:
        order: 1
        http_enabled: true
        http_authenticator: {type: basic, challenge: true}
        authentication_backend: {type: intern}
"""
# The plugin starts with these files only where all of them are there.
EMPTY_FILES: Final = {
    "action_groups": "actiongroups",
    "internal_users": "internalusers",
    "nodes_dn": "nodesdn",
    "roles": "roles",
    "roles_mapping": "rolesmapping",
    "tenants": "tenants",
}


class SecuredOpenSearch(OpenSearchNode):
    """One node with a certificate authority of its own, in ``certificates`` below ``home``."""

    authority: Authority
    """Signs the certificates of the node and of users from now on; clients and node trust those in ``ca_file``."""

    kind: ServerKind = "secured-opensearch"

    def __init__(self, home: Path, port: int, jvm: Jvm, parent_watch: ParentWatch | None = None) -> None:
        super().__init__(home, port, jvm, parent_watch)
        self.authority = Authority.create("schedulerlog embedded")
        self._folder = home / "certificates"
        self._folder.mkdir(parents=True, exist_ok=True)
        self.ca_file.write_bytes(self.authority.certificate_pem)
        self._administrator = self.issue("administrator")

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def ca_file(self) -> Path:
        return self._folder / "ca.crt"

    def issue(self, user: str) -> tuple[Path, Path]:
        """Issue a certificate, by which the node knows this user; return the files of the certificate and its key."""
        files = self._folder / f"{user}.crt", self._folder / f"{user}.key"
        for file, content in zip(files, self.authority.issue(user, usages=CLIENT), strict=True):
            file.write_bytes(content)
        return files

    @cached_property
    def administrator(self) -> httpx.Client:
        """A client that may do everything, also what no role allows."""
        trusted = ssl.create_default_context(cafile=self.ca_file, cadata=self.authority.certificate_pem.decode())
        trusted.load_cert_chain(*self._administrator)
        return httpx.Client(base_url=self.url, verify=trusted, trust_env=False, timeout=30.0)

    def prepare(self) -> None:
        super().prepare()
        self._write_certificates()
        folder = self.home / "node_1" / "config"
        with (folder / "opensearch.yml").open("a", encoding="utf-8") as file:
            file.write(CONFIGURATION)
        (folder / "opensearch-security").mkdir(exist_ok=True)
        empty = {name: f"_meta: {{type: {kind}, config_version: 2}}\n" for name, kind in EMPTY_FILES.items()}
        for name, text in (empty | {"config": AUTHENTICATION}).items():
            (folder / "opensearch-security" / f"{name}.yml").write_text(text, encoding="utf-8")

    def _write_certificates(self) -> None:
        certificate, key = self.authority.issue("node", usages=SERVER + CLIENT)
        for name, content in {"ca.crt": self.ca_file.read_bytes(), "node.crt": certificate, "node.key": key}.items():
            file = self.home / "node_1" / "config" / name
            file.write_bytes(content)
            file.chmod(0o600)

    def reload_certificates(self, authority: Authority) -> None:
        """Let the node take a certificate of this authority, and trust those of ``ca_file``, for new connections."""
        with closing(self.administrator) as before:
            self.authority = authority
            self._write_certificates()
            before.put("/_plugins/_security/api/ssl/http/reloadcerts").raise_for_status()
        # The next one has the administrator's certificate, and trusts the authorities, of now.
        del self.administrator

    def build_command(self) -> list[str]:
        return [*super().build_command(), "-pluginTypes", PLUGIN]

    def is_answering(self) -> bool:
        if not self._has_its_port():
            return False
        try:
            # Its administrator is served before the plugin has read who the others are.
            health = self.administrator.get("/_plugins/_security/health")
            return health.is_success and health.json()["status"] == "UP"
        except httpx.HTTPError:
            return False


@contextmanager
def secured_opensearch() -> Iterator[SecuredOpenSearch]:
    """A node that runs as long as the ``with`` block, and never longer than this process, even if it is killed.

    Raises DownloadError, UnusableSettingError, ServerError.
    """
    kind = SecuredOpenSearch.kind
    jvm = install_jvms(read_settings(os.environ), create_progress(Console(stderr=True)), [kind])[kind]
    with (
        closing(ParentWatch()) as parent_watch,
        TemporaryDirectory(prefix="schedulerlog-", ignore_cleanup_errors=True) as folder,
    ):
        node = _start_node(Path(folder).resolve(), jvm, parent_watch)
        try:
            yield node
        finally:
            node.administrator.close()
            node.kill()


def _start_node(home: Path, jvm: Jvm, parent_watch: ParentWatch) -> SecuredOpenSearch:
    """Start a node and wait until it is ready, at a port that was free; raises ServerError."""
    for attempts_left in reversed(range(PORT_ATTEMPTS)):
        node = SecuredOpenSearch(home, find_free_port(OPENSEARCH_PORTS), jvm, parent_watch)
        try:
            node.start()
        except PortTakenError:
            node.kill()
            if not attempts_left:
                raise
        else:
            break
    return node
