"""Client certificates, by real handshakes with the server of the API."""

from pathlib import Path

import pytest

from api.authority.credentials import PresentedCertificate, derive_caller
from runtime.http.server_tls import CertificatePair
from tests.support.certificates import Authority
from tests.support.fakes.reviews import ACCESS_REVIEW, TOKEN_REVIEW, Grant
from tests.support.harness.api_app import POD
from tests.support.harness.guarded_api import OTHER
from tests.support.harness.served_api import Headers, Served

LATER = {"notAfter": "Jan  1 00:00:00 2027 GMT"}
ENDS_AT = 1_798_761_600.0


def build_certificate(*fields: tuple[str, str]) -> PresentedCertificate:
    return PresentedCertificate({"subject": tuple((field,) for field in fields), **LATER}, b"")


def test_cn_is_the_user_and_each_o_a_group() -> None:
    caller = derive_caller(
        build_certificate(("organizationName", "dev"), ("organizationName", "ops"), ("commonName", "alice")),
        ENDS_AT - 1,
    )
    assert caller
    assert (caller.name, caller.groups) == ("alice", ("dev", "ops", "system:authenticated"))


@pytest.mark.parametrize(
    ("fields", "now"),
    [
        ((("organizationName", "dev"),), 0),
        ((("commonName", ""),), 0),
        ((("commonName", "alice"), ("commonName", "bob")), 0),
        ((("commonName", "alice"),), ENDS_AT),
    ],
)
def test_a_certificate_without_one_user_or_after_its_end_names_no_caller(
    fields: tuple[tuple[str, str], ...], now: float
) -> None:
    assert derive_caller(build_certificate(*fields), now) is None


async def test_a_certificate_of_the_authority_is_its_user(tmp_path: Path) -> None:
    """Rows 66 to 68."""
    ours, foreign = Authority(tmp_path / "ours", "ours"), Authority(tmp_path / "foreign", "foreign")
    pair = ours.issue("api")
    alice, stale, stranger = ours.issue("alice"), ours.issue("old", days=-1), foreign.issue("alice")
    async with Served(CertificatePair(pair.certificate, pair.key, client_ca=ours.ca_file)) as server:
        bob = list(server.reviews.build_header("bob", Grant("bob", "get", "pods", "other")).items())
        assert await server.get_status(POD, ours, alice) == 200
        (review,) = server.reviews.list_specs(ACCESS_REVIEW)
        assert (review["user"], review["groups"]) == ("alice", ["system:authenticated"])
        assert [await server.get_status(POD, ours, client) for client in (stranger, stale)] == [0, 0]
        assert await server.get_status(POD, ours, None) == 401
        # With the token of another caller: the certificate counts, and the token is not reviewed.
        assert await server.get_status(OTHER, ours, alice, bob) == 403
        assert server.reviews.list_specs(TOKEN_REVIEW) == []
        assert await server.get_status(OTHER, ours, None, bob) == 404


async def test_the_authority_of_clients_is_replaced_while_serving(tmp_path: Path) -> None:
    """Row 70."""
    old, new = Authority(tmp_path / "old", "old"), Authority(tmp_path / "new", "new")
    pair = old.issue("api")
    clients = tmp_path / "clients.crt"
    clients.write_bytes(old.ca_file.read_bytes())
    both = old.issue("alice"), new.issue("alice")
    async with Served(CertificatePair(pair.certificate, pair.key, client_ca=clients)) as server:
        assert [await server.get_status(POD, old, client) for client in both] == [200, 0]
        clients.write_bytes(new.ca_file.read_bytes())
        server.certificates.reload()
        assert [await server.get_status(POD, old, client) for client in both] == [0, 200]
        clients.write_text("-----BEGIN CERTIFICATE-----\nbroken")
        server.certificates.reload()
        assert "clients.crt" in server.certificates.problem
        assert [await server.get_status(POD, old, client) for client in both] == [0, 200]


def build_configuration(authority: Authority, names: str = '["front-proxy-client"]') -> dict[str, str]:
    """Build the configuration as kube-apiserver 1.36 writes it into kube-system/extension-apiserver-authentication."""
    return {
        "requestheader-client-ca-file": authority.ca_file.read_text(),
        "requestheader-allowed-names": names,
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-uid-headers": "[]",
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
    }


ALICE: Headers = [
    ("X-Remote-User", "alice"),
    ("X-Remote-Group", "dev"),
    ("X-Remote-Group", "system:authenticated"),
    ("X-Remote-Extra-Example.com%2Fscopes", "read"),
]


async def test_headers_name_the_caller_with_the_certificate_of_the_api_server_alone(tmp_path: Path) -> None:
    ours, proxies = Authority(tmp_path / "ours", "ours"), Authority(tmp_path / "proxies", "proxies")
    pair = ours.issue("api")
    proxy, other_name = proxies.issue("front-proxy-client"), proxies.issue("alice")
    # A user of the clients' authority may well have the proxy's name.
    same_name = ours.issue("front-proxy-client")
    served_pair = CertificatePair(pair.certificate, pair.key, client_ca=ours.ca_file, asks_clients=True)
    async with Served(served_pair, build_configuration(proxies)) as server:
        assert await server.get_status(POD, ours, proxy, ALICE) == 200
        (review,) = server.reviews.list_specs(ACCESS_REVIEW)
        assert (review["user"], review["groups"]) == ("alice", ["dev", "system:authenticated"])
        assert review["extra"] == {"example.com/scopes": ["read"]}
        token = list(server.reviews.build_header("bob").items())
        # Without the headers the certificate is nobody's, also with the token of a caller.
        assert [await server.get_status(POD, ours, proxy, headers) for headers in ([], token)] == [401, 401]
        assert await server.get_status(POD, ours, other_name, ALICE) == 401
        assert await server.get_status(POD, ours, other_name) == 401
        # Known by itself, as who it is: the headers change nothing.
        assert [await server.get_status(POD, ours, same_name, headers) for headers in ([], ALICE)] == [403, 403]
        assert await server.get_status(POD, ours, None, ALICE) == 401
        assert {spec["user"] for spec in server.reviews.list_specs(ACCESS_REVIEW)} == {"alice", "front-proxy-client"}


async def test_the_authority_of_the_api_server_is_replaced_while_serving(tmp_path: Path) -> None:
    ours, old, new = (Authority(tmp_path / name, name) for name in ("ours", "old", "new"))
    pair = ours.issue("api")
    both = old.issue("front-proxy-client"), new.issue("front-proxy-client")
    served_pair = CertificatePair(pair.certificate, pair.key, asks_clients=True)
    async with Served(served_pair, build_configuration(old)) as server:
        assert [await server.get_status(POD, ours, client, ALICE) for client in both] == [200, 0]
        server.proxy = build_configuration(new)
        await server.authorities.read()
        assert [await server.get_status(POD, ours, client, ALICE) for client in both] == [0, 200]
        server.proxy = {}
        await server.authorities.read()
        assert "--requestheader-client-ca-file" in server.authorities.problem
        assert await server.get_status(POD, ours, both[1], ALICE) == 200
        # No authority of users was given, so no certificate names its own holder.
        assert await server.get_status(POD, ours, new.issue("alice")) == 401


async def test_an_authority_of_users_is_not_that_of_the_api_server(tmp_path: Path) -> None:
    ours = Authority(tmp_path / "ours", "ours")
    pair = ours.issue("api")
    served_pair = CertificatePair(pair.certificate, pair.key, client_ca=ours.ca_file, asks_clients=True)
    async with Served(served_pair, build_configuration(ours, "[]")) as server:
        assert "have to differ" in server.authorities.problem
        assert await server.get_status(POD, ours, ours.issue("mallory"), ALICE) == 403
        assert [spec["user"] for spec in server.reviews.list_specs(ACCESS_REVIEW)] == ["mallory"]


async def test_n6_who_becomes_a_user_by_the_api_servers_own_authority_names_no_other(tmp_path: Path) -> None:
    """The API server's authority stays in force when the file of clients' authorities becomes the same one."""
    ours, proxies = Authority(tmp_path / "ours", "ours"), Authority(tmp_path / "proxies", "proxies")
    clients = tmp_path / "clients.crt"
    clients.write_bytes(ours.ca_file.read_bytes())
    pair, mallory = ours.issue("api"), proxies.issue("mallory")
    async with Served(
        CertificatePair(pair.certificate, pair.key, client_ca=clients, asks_clients=True),
        build_configuration(proxies, "[]"),
    ) as server:
        clients.write_bytes(proxies.ca_file.read_bytes())
        server.certificates.reload()
        await server.authorities.read()
        assert "have to differ" in server.authorities.problem
        assert await server.get_status(POD, ours, mallory, ALICE) == 401
        assert not server.reviews.list_specs(ACCESS_REVIEW)
