"""Callers by certificate, by bytes and without a request: the API over HTTPS, its rights on a real API server.

And how it starts, and who may ask the scheduler. The rows are those of the acceptance matrix in
docs/security-tests.md, which says which test shows which row.
"""

import os
import select
import socket
import ssl
import subprocess
import time
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import orjson
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from api.http.pagination import VERSION
from api.http.sealing import SEAL, encode_base64
from dev.embedded.control_plane import ControlPlane
from runtime.http.certificate_authority import CLIENT, SERVER, Authority, to_private_pem
from tests.support.backends import Addresses
from tests.support.builders.kube_objects import a_pod
from tests.support.control_plane.callers import build_rule
from tests.support.control_plane.extender_process import Extender, build_scheduler_configuration
from tests.support.control_plane.objects import a_gpu_node, a_gpu_pod, create, create_pods, created_nodes, list_pods
from tests.support.control_plane.service_account import RBAC
from tests.support.harness.api_process import serving
from tests.support.harness.forked import Forked
from tests.support.harness.tenants import (
    ACCESS_REVIEW,
    PODS,
    TOKEN_REVIEW,
    Tenants,
    tenants,
)
from tests.support.waiting import eventually, until

LOG = "/api/v1/namespaces/{team_a}/pods/train-0/schedulerlog"
OTHERS_LOG = "/api/v1/namespaces/{team_b}/pods/secret-model/schedulerlog"
CALLER, GROUP = "cert-alice", "trainers"
CN, ORG = x509.NameOID.COMMON_NAME, x509.NameOID.ORGANIZATION_NAME
PATIENCE = 10
"""Seconds that a request may take from its connection on (docs/security-review.md, M2 and M3)."""


@dataclass
class Secured:
    """The API over HTTPS, whose files a test may replace."""

    world: Tenants
    folder: Path
    servers: Authority
    clients: Authority

    @property
    def port(self) -> int:
        return self.world.client.base_url.port or 0

    def create_context(self, pair: tuple[bytes, bytes] | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.folder / "ca.crt")
        if pair:
            files = self.folder / "shown.crt", self.folder / "shown.key"
            for file, content in zip(files, pair, strict=True):
                file.write_bytes(content)
            context.load_cert_chain(*files)
        return context

    def get_status(self, path: str, pair: tuple[bytes, bytes] | None = None, **headers: str) -> int:
        """Return the status of the answer, 0 where the handshake is refused."""
        with httpx.Client(
            base_url=self.world.client.base_url, verify=self.create_context(pair), trust_env=False, timeout=30
        ) as client:
            try:
                return client.get(self.world.fill_names(path), headers=headers).status_code
            except httpx.TransportError:
                return 0

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def answer(self, sent: bytes) -> bytes:
        """Return everything that is answered until the server hangs up."""
        with self.create_context().wrap_socket(self.connect(), server_hostname="127.0.0.1") as connection:
            connection.sendall(sent)
            return receive_all(connection)

    def request(self, path: str, *headers: str, close: bool = True) -> bytes:
        lines = [f"GET {self.world.fill_names(path)} HTTP/1.1", "Host: x", *headers, *(["Connection: close"] * close)]
        return "\r\n".join([*lines, "", ""]).encode()


def receive_all(connection: socket.socket) -> bytes:
    content = b""
    with suppress(ConnectionResetError, ssl.SSLError):
        while part := connection.recv(65536):
            content += part
    return content


def parse_statuses(answer: bytes) -> list[int]:
    return [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]]


def issue_certificate(
    authority: Authority,
    subject: Sequence[tuple[x509.ObjectIdentifier, str]],
    *,
    usages: tuple[x509.ObjectIdentifier, ...] = CLIENT,
    ends_after: timedelta = timedelta(days=1),
) -> tuple[bytes, bytes]:
    """Issue a certificate with any subject and end, and its key."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(kind, value) for kind, value in subject]))
        .issuer_name(authority.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=2))
        .not_valid_after(now + ends_after)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()), critical=False)
    )
    return builder.sign(authority.key, hashes.SHA256()).public_bytes(Encoding.PEM), to_private_pem(key)


def write_pair(authority: Authority, folder: Path) -> None:
    for name, content in zip(("tls.crt", "tls.key"), authority.issue("api"), strict=True):
        # Replaced as a whole, as a kubelet replaces the files of a Secret.
        (folder / f"{name}.new").write_bytes(content)
        (folder / f"{name}.new").replace(folder / name)


@pytest.fixture(scope="module")
def running(
    control_plane: ControlPlane, backends: Addresses, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("tenants")
    servers, clients = Authority.create("of servers"), Authority.create("of clients")
    (folder / "ca.crt").write_bytes(servers.certificate_pem)
    (folder / "clients.crt").write_bytes(clients.certificate_pem)
    write_pair(servers, folder)
    settings = {
        "SCHEDULERLOG_API_CERT_FILE": str(folder / "tls.crt"),
        "SCHEDULERLOG_API_KEY_FILE": str(folder / "tls.key"),
        "SCHEDULERLOG_API_CLIENT_CA_FILE": str(folder / "clients.crt"),
    }
    with tenants(control_plane, backends, folder / "api", folder / "ca.crt", **settings) as world:
        let_in(control_plane, world)
        secured = Secured(world, folder, servers, clients)
        pair = issue_certificate(clients, [(CN, CALLER)])
        assert until(lambda: secured.get_status(LOG, pair), lambda status: status == 200) == 200
        yield secured


def let_in(cluster: ControlPlane, world: Tenants) -> None:
    """Let the user of a certificate, and the members of its group, read the pods of the first team."""
    api = "rbac.authorization.k8s.io"
    role = {"metadata": {"name": "certificates"}, "rules": [build_rule(PODS, "get")]}
    subjects = [{"kind": "User", "name": CALLER, "apiGroup": api}, {"kind": "Group", "name": GROUP, "apiGroup": api}]
    binding = {"metadata": {"name": "certificates"}, "subjects": subjects}
    reference = {"apiGroup": api, "kind": "Role", "name": "certificates"}
    with cluster.open_client() as client:
        create(client, f"{RBAC}/namespaces/{world.team_a}/roles", role)
        create(client, f"{RBAC}/namespaces/{world.team_a}/rolebindings", binding | {"roleRef": reference})


@pytest.fixture
def api(running: Secured) -> Secured:
    running.world.reviews.reset()
    return running


def test_cn_is_the_user_and_each_o_a_group(api: Secured) -> None:
    """Row 66: a certificate of another name is let in for its group."""
    member = issue_certificate(api.clients, [(ORG, "others"), (ORG, GROUP), (CN, "cert-carol")])
    assert api.get_status(LOG, member) == 200
    (spec,) = api.world.list_reviews(ACCESS_REVIEW)
    assert (spec["user"], spec["groups"]) == ("cert-carol", ["others", GROUP, "system:authenticated"])
    alice = issue_certificate(api.clients, [(CN, CALLER)])
    assert [api.get_status(path, alice) for path in (LOG, OTHERS_LOG)] == [200, 403]
    assert api.world.list_reviews(TOKEN_REVIEW) == []


def test_a_certificate_without_one_user_is_refused(api: Secured) -> None:
    """Row 67."""
    user = [(CN, CALLER)]
    refused = {
        "of another authority": issue_certificate(Authority.create("foreign"), user),
        "expired": issue_certificate(api.clients, user, ends_after=timedelta(hours=-1)),
        "of a server": issue_certificate(api.clients, user, usages=SERVER),
        "of the API's own authority": issue_certificate(api.servers, user),
    }
    assert {name: api.get_status(LOG, pair) for name, pair in refused.items()} == dict.fromkeys(refused, 0)
    nameless = [[(ORG, GROUP)], [(CN, "cert-alice"), (CN, "cert-bob")]]
    assert [api.get_status(LOG, issue_certificate(api.clients, subject)) for subject in nameless] == [401, 401]
    assert api.get_status(LOG) == 401
    assert api.world.reviews.passed == []


def test_the_certificate_alone_counts_beside_a_token(api: Secured) -> None:
    """Row 68: never the rights of two callers together."""
    bob = api.world.renew_header("bob")
    alice = issue_certificate(api.clients, [(CN, CALLER)])
    assert [api.get_status(path, alice, **bob) for path in (LOG, OTHERS_LOG)] == [200, 403]
    assert api.world.list_reviews(TOKEN_REVIEW) == []
    assert [api.get_status(path, None, **bob) for path in (LOG, OTHERS_LOG)] == [403, 200]
    # Headers name nobody: no certificate of an API server is trusted here.
    assert api.get_status(OTHERS_LOG, alice, **{"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}) == 403


def test_a_continue_token_is_sealed_by_the_key_of_the_certificate(api: Secured) -> None:
    """Row 40: what anybody encrypts with the key of an API without authentication is refused."""
    path = "/schedulerlogs?namespace={team_a}&limit=1"
    token = api.world.get("lead", path).headers["x-continue"]
    forged = encode_base64(SEAL.encrypt(zlib.compress(orjson.dumps([VERSION, "", {}]))))
    statuses = [api.world.get("lead", f"{path}&continue={value}").status_code for value in (token, forged)]
    assert statuses == [200, 400]


@pytest.mark.parametrize(
    "headers",
    [
        ("Content-Length: 5", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: 5"),
        ("Content-Length: 5", "Content-Length: 6"),
    ],
)
def test_a_request_with_two_lengths_is_refused(api: Secured, headers: tuple[str, ...]) -> None:
    """Row 27."""
    token = api.world.headers["alice"]["Authorization"]
    smuggled = b"0\r\n\r\n" + api.request(LOG, f"Authorization: {token}")
    request = api.request(LOG, f"Authorization: {token}", *headers, close=False)
    assert parse_statuses(api.answer(request + smuggled)) == [400]
    assert api.world.reviews.passed == []


def test_each_request_on_a_connection_shows_who_it_is_by_itself(api: Secured) -> None:
    """Row 27."""
    token = api.world.headers["alice"]["Authorization"]
    both = api.request(LOG, f"Authorization: {token}", close=False) + api.request(LOG)
    assert parse_statuses(api.answer(both)) == [200, 401]


def test_no_connection_is_upgraded(api: Secured) -> None:
    """Row 28: the header is ignored (RFC 9110, 7.8), and the request is judged as any other."""
    token = api.world.headers["alice"]["Authorization"]
    for protocol in ("websocket", "h2c"):
        upgrade = (f"Upgrade: {protocol}", "Connection: Upgrade, close", "Sec-WebSocket-Version: 13",
                   "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "HTTP2-Settings: AAMAAABkAAQAAP__")  # fmt: skip
        for path, status in ((LOG, 200), (OTHERS_LOG, 403), ("/no/such/path", 404)):
            requests = (
                api.request(path, *head, close=False) for head in (upgrade, (*upgrade, f"Authorization: {token}"))
            )
            assert [parse_statuses(api.answer(request)) for request in requests] == [[401], [status]], (protocol, path)


def test_a_path_is_judged_as_it_is_routed(api: Secured) -> None:
    """Rows 23 and 26: as bytes, which a client library would not send."""
    ours, other = (api.world.fill_names(path) for path in (LOG, OTHERS_LOG))
    token = f"Authorization: {api.world.renew_header('alice')['Authorization']}"
    for path in (ours, other):
        for target in (f"http://other{path}", f"https://{api.world.team_a}{path}"):
            (status,) = parse_statuses(api.answer(api.request(target, token)))
            # A target with an address is refused, or judged by its path.
            assert status in ((200, 400, 404) if path == ours else (400, 403, 404)), target
    api.world.reviews.reset()
    everybody = f"Authorization: {api.world.renew_header('all')['Authorization']}"
    odd = ("а", "\\..\\", "/./", "%00", "%2e%2e%2f", "//")
    for text in odd:
        path = other.replace(api.world.team_b, api.world.team_b + text)
        assert parse_statuses(api.answer(api.request(path, everybody))) in ([400], [404]), text
    for raw in (b"\0", b"\xff", b" x"):
        sent = api.request(other, everybody).replace(b"/pods", raw + b"/pods")
        assert parse_statuses(api.answer(sent)) in ([400], [404]), raw
    assert api.world.list_reviews(ACCESS_REVIEW) == []


def test_nothing_but_tls_is_answered(api: Secured) -> None:
    """Row 65.

    There is no Strict-Transport-Security: it is about every port of a host, and the API's is one of a node's.
    """
    with api.connect() as plain:
        plain.sendall(api.request("/healthz"))
        assert b"HTTP/1.1" not in receive_all(plain)
    old = api.create_context()
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises(OSError), api.connect() as connection:  # noqa: PT011 - reset, or with TLS's own alert
        old.wrap_socket(connection, server_hostname="127.0.0.1")
    both = api.create_context()
    both.set_alpn_protocols(["h2", "http/1.1"])
    with both.wrap_socket(api.connect(), server_hostname="127.0.0.1") as connection:
        assert connection.selected_alpn_protocol() in (None, "http/1.1")
        assert connection.version() == "TLSv1.3"
    answer = api.world.client.get("/healthz")
    assert (answer.status_code, "strict-transport-security" in answer.headers) == (200, False)


def test_who_does_not_finish_is_hung_up_on_and_others_are_answered(api: Secured) -> None:
    """Row 69: two hundred without a hello, and those who stop in the middle."""
    header = api.world.headers["alice"]
    token = f"Authorization: {header['Authorization']}"
    half = (
        b"GET /api/v1/namespaces",
        api.request(LOG, token, close=False)[:-2],
        b"POST /api/v1/simulate HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n" + token.encode() + b"\r\n\r\nhalf",
    )
    silent = [api.connect() for _ in range(200)]
    began = time.monotonic()
    with ThreadPoolExecutor(len(half)) as threads:
        halves = [threads.submit(api.answer, sent) for sent in half]
        assert api.world.client.get(api.world.fill_names(LOG), headers=header).status_code == 200
        # While all of them are still connected: none has anything to read, not even its end.
        assert select.select(silent, (), (), 0)[0] == []
        assert {api.world.client.get(api.world.fill_names(LOG), headers=header).status_code for _ in range(20)} == {200}
        for sent_half in halves:
            assert set(parse_statuses(sent_half.result(60))) <= {400, 408}
    for connection in silent:
        with connection:
            assert receive_all(connection) == b""
    # The machine may be slow; without a limit the reads would end after a minute.
    assert PATIENCE - 1 < time.monotonic() - began < 5 * PATIENCE


def test_certificate_and_authority_are_replaced_while_serving(api: Secured) -> None:
    """Row 70: a broken pair keeps the old one in force; a metric and the log say so, and it stays ready."""
    old, new = api.clients, Authority.create("the next one of clients")
    both = [issue_certificate(authority, [(CN, CALLER)]) for authority in (old, new)]

    def read_serial() -> int:
        with api.create_context().wrap_socket(api.connect(), server_hostname="127.0.0.1") as connection:
            certificate = connection.getpeercert()
        assert certificate
        return int(str(certificate["serialNumber"]), 16)

    def read_gauge() -> float:
        text = api.world.client.get("/metrics", headers=api.world.headers["prom"]).text
        return next(
            float(line.split()[-1])
            for line in text.splitlines()
            if line.startswith("schedulerlog_api_certificates_current")
        )

    first = read_serial()
    assert [api.get_status(LOG, pair) for pair in both] == [200, 0]
    write_pair(api.servers, api.folder)
    (api.folder / "clients.crt").write_bytes(new.certificate_pem)
    eventually(lambda: read_serial() != first, "the first one is still served")
    until(lambda: [api.get_status(LOG, pair) for pair in both], lambda statuses: statuses == [0, 200])
    second = read_serial()
    (api.folder / "tls.key").write_text("-----BEGIN PRIVATE KEY-----\nbroken")
    eventually(lambda: read_gauge() == 0, "the metric does not say so")
    assert "tls.key" in api.world.log.read_text()
    assert (read_serial(), api.get_status("/readyz")) == (second, 200)
    (api.folder / "clients.crt").write_bytes(old.certificate_pem)
    write_pair(api.servers, api.folder)
    eventually(lambda: read_gauge() == 1, "the metric does not say so")
    assert [api.get_status(LOG, pair) for pair in both] == [200, 0]


def test_nothing_secret_is_in_the_log(api: Secured) -> None:
    """Row 75, of the callers before."""
    text = api.world.log.read_text()
    for header in api.world.headers.values():
        assert header.get("Authorization", "Bearer -").removeprefix("Bearer ") not in text.split()
    assert "PRIVATE KEY" not in text.replace("-----BEGIN PRIVATE KEY-----", "")
    assert "Authorization" not in text
    assert "Traceback" not in text


def start(**settings: str) -> tuple[int, str]:
    """Start a process that should not start, and return how it ends."""
    nowhere = {
        "SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1",
        "SCHEDULERLOG_OPENSEARCH_URL": "http://127.0.0.1:1",
        "SCHEDULERLOG_API_LISTEN": "127.0.0.1:0",
    }
    process = Forked("api", "serve", env=os.environ | nowhere | settings, stderr=subprocess.PIPE, text=True)
    _, errors = process.communicate(timeout=120)
    return process.wait(), errors


def test_it_never_starts_open(api: Secured, tmp_path: Path) -> None:
    """Rows 77 and 78: status 2 and one line each."""
    kubeconfig, token = api.world.kubeconfig.read_text(), tmp_path / "token"
    (tmp_path / "no-authority").write_text(
        kubeconfig.replace("ca.crt", "does-not-exist.crt").replace("http:", "https:")
    )
    (tmp_path / "no-token").write_text(kubeconfig)
    assert not token.exists()
    kubernetes = {"SCHEDULERLOG_API_AUTHENTICATION": "kubernetes"}
    wrong: dict[str, dict[str, str]] = {
        "everybody reaches it": {"SCHEDULERLOG_API_LISTEN": "0.0.0.0:0"},
        "tokens without HTTPS": kubernetes
        | {"SCHEDULERLOG_API_LISTEN": "0.0.0.0:0", "SCHEDULERLOG_KUBECONFIG": str(api.world.kubeconfig)},
        "no cluster": kubernetes,
        "no kubeconfig": kubernetes | {"SCHEDULERLOG_KUBECONFIG": str(tmp_path / "missing")},
        "no authority": kubernetes | {"SCHEDULERLOG_KUBECONFIG": str(tmp_path / "no-authority")},
        "no service account": kubernetes | {"SCHEDULERLOG_KUBECONFIG": str(tmp_path / "no-token")},
    }
    with ThreadPoolExecutor(2) as threads:
        outcomes = dict(zip(wrong, threads.map(lambda settings: start(**settings), wrong.values()), strict=True))
    ends = {name: (code, error.count("\n")) for name, (code, error) in outcomes.items()}
    assert ends == dict.fromkeys(wrong, (2, 1)), outcomes


def test_without_authentication_this_machine_alone_is_answered() -> None:
    """Row 77: no page of the web that leads here under a name of its own; others only where a flag says so."""
    nowhere = "127.0.0.1:1", "http://127.0.0.1:1"
    with serving(*nowhere) as local:
        hosts = ("127.0.0.1:9090", "localhost", "rebound.example")
        answers = [local.client.get("/healthz", headers={"Host": host}).status_code for host in hosts]
    assert answers == [200, 200, 421]
    with serving(*nowhere, SCHEDULERLOG_API_LISTEN="0.0.0.0:0", SCHEDULERLOG_API_INSECURE="true") as everybody:
        url = everybody.client.base_url.copy_with(host="127.0.0.1")
        assert httpx.get(url.join("/healthz"), trust_env=False, timeout=30).status_code == 200


def test_only_kube_scheduler_may_ask_the_scheduler(
    control_plane: ControlPlane, backends: Addresses, namespace: str, tmp_path: Path
) -> None:
    """Row 80: filter and bind with the certificate of a real kube-scheduler alone."""
    name, clients, servers = "hami-certified", Authority.create("kube-scheduler's"), Authority.create("the extender's")
    (tmp_path / "clients.crt").write_bytes(clients.certificate_pem)
    files = {}
    for who, pair in {
        "kube-scheduler": clients.issue("kube-scheduler", usages=CLIENT),
        "other": Authority.create("of somebody else").issue("kube-scheduler", usages=CLIENT),
    }.items():
        files[who] = tmp_path / f"{who}.crt", tmp_path / f"{who}.key"
        for file, content in zip(files[who], pair, strict=True):
            file.write_bytes(content)
    flags = ("--client-ca-file", str(tmp_path / "clients.crt"), "--no-publish")
    node = a_gpu_node(f"certified-{namespace}")
    with (
        created_nodes(control_plane, [node]) as (node_name,),
        Extender(tmp_path / "extender", control_plane.kubeconfig, servers, name, *flags) as extender,
        control_plane.open_client() as client,
    ):

        def get_status(path: str, who: str = "") -> int:
            context = ssl.create_default_context(cafile=extender.ca)
            if who:
                context.load_cert_chain(*files[who])
            body = {"Pod": a_pod(), "NodeNames": [node_name]}
            with httpx.Client(verify=context, trust_env=False, timeout=30) as caller:
                try:
                    return caller.post(f"{extender.url}{path}", json=body, timeout=30).status_code
                except httpx.TransportError:
                    return 0

        for path in ("/filter", "/bind"):
            assert [get_status(path, who) for who in ("", "other", "kube-scheduler")] == [403, 0, 200], path
        configuration = build_scheduler_configuration(extender.url, extender.ca, name)
        certificate, key = map(str, files["kube-scheduler"])
        configuration["extenders"][0]["tlsConfig"] |= {"certFile": certificate, "keyFile": key}
        control_plane.start_scheduler(configuration)
        create_pods(client, namespace, [a_gpu_pod("certified", name)])
        eventually(
            lambda: [pod["spec"].get("nodeName") for pod in list_pods(client, namespace)] == [node_name],
            "kube-scheduler does not place the pod",
        )
