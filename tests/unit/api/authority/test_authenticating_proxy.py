"""Callers that an authenticating proxy names in headers, by real handshakes with the server of the API."""

import ssl
from pathlib import Path

import pytest
from pydantic import ValidationError

from api.authority.authenticating_proxy import AuthenticatingProxy
from api.authority.credentials import Caller, PresentedCertificate
from api.server import load_certificates
from api.settings import CERTIFICATE_VARIABLES, Settings
from runtime.errors import SettingError
from runtime.http.server_tls import CertificatePair
from tests.support.certificates import Authority
from tests.support.fakes.reviews import ACCESS_REVIEW, TOKEN_REVIEW, Grant
from tests.support.harness.api_app import POD, PROXY_NAME, SETTINGS
from tests.support.harness.guarded_api import OTHER
from tests.support.harness.served_api import Headers, Served

ENDS_AT = "Jan  1 00:00:00 2027 GMT"
NOW = ssl.cert_time_to_seconds(ENDS_AT) - 1
ALICE: Headers = [("X-Forwarded-User", "alice"), ("X-Forwarded-Groups", "dev, ops,dev")]


def identify(*headers: tuple[str, str], name: str = "login", prefix: str = "", now: float = NOW) -> Caller | None:
    proxy = AuthenticatingProxy(frozenset(), frozenset({"login"}), "X-Auth-Request-Email", "X-Auth-Groups", prefix)
    certificate = PresentedCertificate({"subject": ((("commonName", name),),), "notAfter": ENDS_AT}, b"")
    return proxy.identify_caller(certificate, [(key.encode(), value.encode()) for key, value in headers], now)


def test_a_caller_has_the_groups_of_the_header_and_that_of_every_known_caller() -> None:
    named = ("x-auth-request-email", "ana@example.com"), ("X-AUTH-GROUPS", "dev, ops,,dev")
    assert identify(*named) == Caller("ana@example.com", groups=("dev", "ops", "system:authenticated"))
    assert identify(named[0]) == Caller("ana@example.com", groups=("system:authenticated",))


def test_the_prefix_of_the_api_server_comes_before_user_and_groups() -> None:
    named = ("X-Auth-Request-Email", "ana"), ("X-Auth-Groups", "dev,system:masters")
    expected = ("oidc:dev", "oidc:system:masters", "system:authenticated")
    assert identify(*named, prefix="oidc:") == Caller("oidc:ana", groups=expected)


@pytest.mark.parametrize(
    ("headers", "name", "now"),
    [
        ([], "login", NOW),
        ([("X-Auth-Request-Email", " ")], "login", NOW),
        ([("X-Forwarded-User", "ana")], "login", NOW),
        ([("X-Auth-Request-Email", "ana"), ("X-Auth-Request-Email", "root")], "login", NOW),
        ([("X-Auth-Request-Email", "ana"), ("X-Auth-Groups", "dev"), ("X-Auth-Groups", "admins")], "login", NOW),
        ([("X-Auth-Request-Email", "system:admin")], "login", NOW),
        ([("X-Auth-Request-Email", "ana")], "another", NOW),
        ([("X-Auth-Request-Email", "ana")], "", NOW),
        ([("X-Auth-Request-Email", "ana")], "login", NOW + 1),
    ],
)
def test_other_headers_and_another_certificate_name_no_caller(
    headers: list[tuple[str, str]], name: str, now: float
) -> None:
    assert identify(*headers, name=name, now=now) is None


def test_groups_that_kubernetes_keeps_for_itself_do_not_count() -> None:
    caller = identify(("X-Auth-Request-Email", "ana"), ("X-Auth-Groups", "system:masters,dev"))
    assert caller
    assert caller.groups == ("dev", "system:authenticated")


def build_pair(pair: CertificatePair, proxies: Path, clients: Path | None = None) -> CertificatePair:
    return CertificatePair(pair.certificate, pair.key, CERTIFICATE_VARIABLES, clients, proxy_ca=proxies)


async def test_headers_name_the_caller_with_the_certificate_of_the_proxy_alone(tmp_path: Path) -> None:
    ours, proxies, foreign = (Authority(tmp_path / name, name) for name in ("ours", "proxies", "foreign"))
    proxy, another, stale = proxies.issue(PROXY_NAME), proxies.issue("another"), proxies.issue("stale", days=-1)
    # A user of the clients' authority may well have the proxy's name, and a stranger too.
    client, stranger = ours.issue(PROXY_NAME), foreign.issue(PROXY_NAME)
    async with Served(build_pair(ours.issue("api"), proxies.ca_file, ours.ca_file)) as server:
        assert await server.get_status(POD, ours, proxy, ALICE) == 200
        (review,) = server.reviews.list_specs(ACCESS_REVIEW)
        assert (review["user"], review["groups"]) == ("alice", ["dev", "ops", "system:authenticated"])
        bob = list(server.reviews.build_header("bob", Grant("bob", "get", "pods", "other")).items())
        # Without the headers the certificate is nobody's, also with the token of a caller.
        assert [await server.get_status(POD, ours, proxy, headers) for headers in ([], bob)] == [401, 401]
        # With both, the token does not count.
        assert await server.get_status(OTHER, ours, proxy, [*ALICE, *bob]) == 403
        assert await server.get_status(POD, ours, another, ALICE) == 401
        assert await server.get_status(POD, ours, None, ALICE) == 401
        assert [await server.get_status(POD, ours, pair, ALICE) for pair in (stranger, stale)] == [0, 0]
        # Known by itself, as who it is: the headers change nothing.
        assert await server.get_status(POD, ours, client, ALICE) == 403
        assert {spec["user"] for spec in server.reviews.list_specs(ACCESS_REVIEW)} == {"alice", PROXY_NAME}
        assert server.reviews.list_specs(TOKEN_REVIEW) == []


async def test_a_page_has_the_rights_of_the_user_in_the_headers(tmp_path: Path) -> None:
    ours, proxies = Authority(tmp_path / "ours", "ours"), Authority(tmp_path / "proxies", "proxies")
    proxy = proxies.issue(PROXY_NAME)
    async with Served(build_pair(ours.issue("api"), proxies.ca_file)) as server:
        pages = ["/ui/pods/llm/deepseek-a", "/ui/pods/other/deepseek-a"]
        assert [await server.get_status(page, ours, proxy, ALICE) for page in pages] == [200, 403]
        assert {spec["user"] for spec in server.reviews.list_specs(ACCESS_REVIEW)} == {"alice"}


async def test_the_authority_of_the_proxy_is_replaced_while_serving(tmp_path: Path) -> None:
    ours, old, new = (Authority(tmp_path / name, name) for name in ("ours", "old", "new"))
    both = old.issue(PROXY_NAME), new.issue(PROXY_NAME)
    file = tmp_path / "proxies.crt"
    file.write_bytes(old.ca_file.read_bytes())
    async with Served(build_pair(ours.issue("api"), file)) as server:
        assert [await server.get_status(POD, ours, pair, ALICE) for pair in both] == [200, 0]
        file.write_bytes(new.ca_file.read_bytes())
        server.certificates.reload()
        assert [await server.get_status(POD, ours, pair, ALICE) for pair in both] == [0, 200]


async def test_an_authority_that_becomes_that_of_clients_too_names_no_caller(tmp_path: Path) -> None:
    ours, proxies = Authority(tmp_path / "ours", "ours"), Authority(tmp_path / "proxies", "proxies")
    clients = tmp_path / "clients.crt"
    clients.write_bytes(ours.ca_file.read_bytes())
    async with Served(build_pair(ours.issue("api"), proxies.ca_file, clients)) as server:
        clients.write_bytes(proxies.ca_file.read_bytes())
        server.certificates.reload()
        assert "have to differ" in server.authorities.problem
        assert await server.get_status(POD, ours, proxies.issue(PROXY_NAME), ALICE) == 401
        assert server.reviews.list_specs(ACCESS_REVIEW) == []


def test_a_start_with_one_authority_for_clients_and_the_proxy_is_refused(tmp_path: Path) -> None:
    ours = Authority(tmp_path, "ours")
    pair = ours.issue("api")
    files = {"api_cert_file": pair.certificate, "api_key_file": pair.key}
    both = {"api_client_ca_file": ours.ca_file, "api_proxy_ca_file": ours.ca_file}
    with pytest.raises(SettingError, match=r"SCHEDULERLOG_API_PROXY_CA_FILE: .* the two have to differ"):
        load_certificates(SETTINGS.model_copy(update=files | both))


@pytest.mark.parametrize(
    ("names", "authentication", "why"),
    [
        ("", "kubernetes", "SCHEDULERLOG_API_PROXY_NAMES: is missing"),
        ("login", "none", "SCHEDULERLOG_API_PROXY_CA_FILE: needs SCHEDULERLOG_API_CERT_FILE and"),
    ],
)
def test_settings_that_would_believe_anybody_are_refused(
    tmp_path: Path, names: str, authentication: str, why: str
) -> None:
    files = {"api_cert_file": tmp_path / "tls.crt", "api_key_file": tmp_path / "tls.key"}
    others = {"api_proxy_ca_file": tmp_path / "ca.crt", "api_proxy_names": names, "api_authentication": authentication}
    with pytest.raises(ValidationError, match=why):
        Settings.model_validate(SETTINGS.model_dump() | files | others)
