"""A real Kafka with rules: TLS, SASL, client certificates and ACLs; without an ACL nobody may do anything.

Three listeners: ``SASL_SSL`` (SCRAM-SHA-512, PLAIN, OAUTHBEARER), ``SSL`` (client certificates), and a plain one, whose
anonymous user is the super user of the tests.
"""

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from dev.embedded.installed import install_jvms
from dev.embedded.jvm import Jvm, build_java_environment, read_settings
from dev.embedded.kafka import Address, BrokerOptions, KafkaBroker
from dev.embedded.kafka_storage import generate_id
from dev.embedded.ports import KAFKA_PORTS, find_free_port
from dev.embedded.process import ParentWatch
from tests.support.certificates import Authority
from tests.support.secured_kafka.tokens import AUDIENCE, ISSUER, OAuthClients, TokenIssuer, token_server

PASSWORD: Final = "correct-horse"  # noqa: S105 - of users that live as long as a test
REAUTHENTICATION_MS: Final = 4_000
"""The broker closes a connection by OAUTHBEARER after so long: its token may have ended."""
KEYSTORE: Final = "broker.pem"
KEY_SET: Final = "jwks.json"
_MODULES: Final = "org.apache.kafka.common.security"


class SecuredKafka:
    """The broker, its addresses, and what each user needs to be known by it."""

    def __init__(self, folder: Path, broker: KafkaBroker, sasl_port: int, tls_port: int, users: Sequence[str]) -> None:
        self.folder, self.broker, self.users = folder, broker, tuple(users)
        self.sasl, self.tls = f"127.0.0.1:{sasl_port}", f"127.0.0.1:{tls_port}"
        self.plain = broker.bootstrap_server
        """Of the super user."""
        self.passwords = dict.fromkeys(users, PASSWORD)
        """For SCRAM, by user."""
        self.authority = Authority(folder / "authority")
        self.clients = OAuthClients()
        self.token_url: str
        self.jvm: Jvm
        self.write_files()

    def write_files(self) -> None:
        """Write the files that the broker reads when it starts: its pair, and the keys of tokens."""
        pair = self.authority.issue("broker")
        (self.folder / KEYSTORE).write_bytes(pair.key.read_bytes() + pair.certificate.read_bytes())
        (self.folder / KEY_SET).write_text(json.dumps(self.clients.issuer.build_key_set()))

    def restart_with_another_authority(self) -> None:
        """Restart the broker with an authority and an issuer of tokens that know no client and no token of before. The
        file of the authority has the new one.
        """
        self.authority, self.clients.issuer = Authority(self.folder / "authority"), TokenIssuer()
        self.write_files()
        self.broker.kill()
        self.broker.start()

    def use_scram(self, user: str, password: str = "") -> dict[str, str]:
        """Write the settings of a process that is known by a password; ``password``: another one than the user's."""
        name = f"{user}-{password}.password" if password else f"{user}.password"
        return self._use_sasl("SCRAM-SHA-512") | {
            "SCHEDULERLOG_KAFKA_USERNAME": user,
            "SCHEDULERLOG_KAFKA_PASSWORD_FILE": str(self._write_file(name, password or self.passwords[user])),
        }

    def change_password(self, user: str, password: str) -> None:
        """Change the password by which the broker knows the user from now on, by Kafka's own tool."""
        self.passwords[user] = password
        change = ("--alter", "--entity-type", "users", "--entity-name", user)
        options = (*change, "--add-config", f"SCRAM-SHA-512=[iterations=4096,password={password}]")
        # Without the cache of the broker's classes, which this class has no part in.
        jvm = replace(self.jvm, flags=tuple(flag for flag in self.jvm.flags if not flag.startswith("-XX:AOT")))
        command = jvm.build_command("kafka.admin.ConfigCommand", "--bootstrap-server", self.plain, *options)
        environment = build_java_environment(os.environ)
        subprocess.run(command, check=True, capture_output=True, env=environment, timeout=120)

    def use_plain_password(self, user: str) -> dict[str, str]:
        """Write the settings of a process that sends its password as it is."""
        return self.use_scram(user) | {"SCHEDULERLOG_KAFKA_SASL_MECHANISM": "PLAIN"}

    def use_oauth(self, user: str, token_file: Path | None = None) -> dict[str, str]:
        """Write the settings of a process that is known by a token."""
        file = token_file or self.write_token_file(self.folder / f"{user}.token", user)
        return self._use_sasl("OAUTHBEARER") | {"SCHEDULERLOG_KAFKA_OAUTH_TOKEN_FILE": str(file)}

    def use_client_credentials(self, user: str, secret: str = "") -> dict[str, str]:
        """Write the settings of a process that asks for its tokens; ``secret``: another one than the clients'."""
        name = f"{user}-{secret}.secret" if secret else f"{user}.secret"
        return self._use_sasl("OAUTHBEARER") | {
            "SCHEDULERLOG_KAFKA_OAUTH_TOKEN_URL": self.token_url,
            "SCHEDULERLOG_KAFKA_OAUTH_CLIENT_ID": user,
            "SCHEDULERLOG_KAFKA_OAUTH_CLIENT_SECRET_FILE": str(self._write_file(name, secret or self.clients.secret)),
        }

    def write_token_file(self, path: Path, user: str, seconds: float = 3600) -> Path:
        """Write a token into the file, in the place of the one before; as a whole, as a kubelet does."""
        (path.parent / f"{path.name}.new").write_text(self.clients.issuer.sign_token(user, seconds))
        return (path.parent / f"{path.name}.new").rename(path)

    def use_certificate(self, user: str, authority: Authority | None = None, days: int = 1) -> dict[str, str]:
        """Write the settings of a process that is known by a certificate."""
        pair = (authority or self.authority).issue(user, days=days)
        return {
            "SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS": self.tls,
            "SCHEDULERLOG_KAFKA_SECURITY_PROTOCOL": "SSL",
            "SCHEDULERLOG_KAFKA_CA_FILE": str(self.authority.ca_file),
            "SCHEDULERLOG_KAFKA_CERT_FILE": str(pair.certificate),
            "SCHEDULERLOG_KAFKA_KEY_FILE": str(pair.key),
        }

    def _use_sasl(self, mechanism: str) -> dict[str, str]:
        return {
            "SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS": self.sasl,
            "SCHEDULERLOG_KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
            "SCHEDULERLOG_KAFKA_SASL_MECHANISM": mechanism,
            "SCHEDULERLOG_KAFKA_CA_FILE": str(self.authority.ca_file),
        }

    def _write_file(self, name: str, content: str) -> Path:
        path = self.folder / name
        path.write_text(content)
        return path


@contextmanager
def secured_kafka(folder: Path, users: Sequence[str]) -> Iterator[SecuredKafka]:
    """A broker that runs as long as the context, and knows these users by each of the ways."""
    folder.mkdir(parents=True, exist_ok=True)
    ports: list[int] = []
    for _ in range(4):
        ports.append(find_free_port(KAFKA_PORTS, ports))
    options = _options(folder, ports, users)
    with closing(ParentWatch()) as watch:
        jvm = install_jvms(read_settings(os.environ))["kafka"]
        addresses = [Address(0, ports[0], ports[1])]
        broker = KafkaBroker(folder / "kafka", addresses, 0, generate_id(), jvm, watch, options=options)
        kafka = SecuredKafka(folder, broker, ports[2], ports[3], users)
        kafka.jvm = jvm
        try:
            with token_server(kafka.clients) as kafka.token_url:
                broker.start()
                yield kafka
        finally:
            broker.kill()


def _options(folder: Path, ports: Sequence[int], users: Sequence[str]) -> BrokerOptions:
    client, controller, sasl, tls = ports
    jwks = folder / KEY_SET
    names = {"PLAINTEXT": client, "SASL_SSL": sasl, "SSL": tls}
    addresses = ",".join(f"{name}://127.0.0.1:{port}" for name, port in names.items())
    passwords = " ".join(f'user_{user}="{PASSWORD}"' for user in users)
    mechanism = "listener.name.sasl_ssl"
    return BrokerOptions(
        {
            "listeners": f"{addresses},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": addresses,
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,SSL:SSL",
            "inter.broker.listener.name": "PLAINTEXT",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(folder / KEYSTORE),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(folder / "authority" / "ca.crt"),
            "listener.name.ssl.ssl.client.auth": "required",
            f"{mechanism}.sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN,OAUTHBEARER",
            f"{mechanism}.scram-sha-512.sasl.jaas.config": f"{_MODULES}.scram.ScramLoginModule required;",
            f"{mechanism}.plain.sasl.jaas.config": f"{_MODULES}.plain.PlainLoginModule required {passwords};",
            f"{mechanism}.oauthbearer.sasl.jaas.config": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required;",
            f"{mechanism}.oauthbearer.sasl.server.callback.handler.class": (
                f"{_MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler"
            ),
            f"{mechanism}.oauthbearer.connections.max.reauth.ms": str(REAUTHENTICATION_MS),
            f"{mechanism}.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": jwks.as_uri(),
            f"{mechanism}.oauthbearer.sasl.oauthbearer.expected.issuer": ISSUER,
            f"{mechanism}.oauthbearer.sasl.oauthbearer.expected.audience": AUDIENCE,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "false",
            "super.users": "User:ANONYMOUS",
        },
        tuple(
            part
            for user in users
            for part in ("--add-scram", f"SCRAM-SHA-512=[name={user},iterations=4096,password={PASSWORD}]")
        ),
        (
            # Each decision of the authorizer, and the rule that it follows from: a line of the broker's log.
            "-Dorg.slf4j.simpleLogger.log.kafka.authorizer.logger=debug",
            f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={jwks.as_uri()}",
        ),
    )
