"""Every process on a real OpenSearch with its security plugin, with the roles of `schedulerlog pipeline roles`."""

import asyncio
import copy
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from opensearchpy.exceptions import AuthorizationException

from api.index.reading.client import IndexRefusedError
from cli.doctor.opensearch import check
from dev import embedded
from dev.demo.processes import find_free_ports
from dev.embedded.secured_opensearch import SecuredOpenSearch, secured_opensearch
from pipeline.admin.provision import provision
from pipeline.admin.roles import make_roles
from pipeline.index.process import run as run_index
from pipeline.settings import IndexSettings, ProvisionSettings
from runtime import refused_credentials
from runtime.errors import FixedCredentialsError, UnreachableError
from runtime.http.certificate_authority import CLIENT, Authority
from runtime.opensearch.client import create_client
from runtime.opensearch.roles import PROVISIONER, READER, ROLES, WRITER
from runtime.settings.opensearch_connection import OpenSearchConnection
from schemas.topics import ATTEMPTS
from tests.support.harness.api_process import serving
from tests.support.harness.forked import ForkedProcesses
from tests.support.harness.index_filling import Filling, an_attempt
from tests.support.harness.pipeline_process import Pipeline
from tests.support.harness.secured_opensearch import (
    DAY,
    PASSWORD,
    assert_all_succeeded,
    build_settings,
    connect_by_certificate,
    connect_by_password,
    make_templates,
    provide,
    read,
    write,
    write_environment,
)
from tests.support.harness.steady_load import steady_load
from tests.support.reused_backends import reused_backends
from tests.support.stress import run_in_make_stress
from tests.support.tcp_proxy import TcpProxy
from tests.support.waiting import PATIENCE_SECONDS, eventually, eventually_async, until

ROLES_API: Final = "/_plugins/_security/api/roles"
USERS: Final = "/_plugins/_security/api/internalusers"
PERMISSIONS: Final = [
    (role, position, permission)
    for role, content in ROLES.items()
    for position, permissions in enumerate(
        (content["cluster_permissions"], *(item["allowed_actions"] for item in content["index_permissions"]))
    )
    for permission in permissions
]
"""Role, number of the list, and permission; 0: the role's permissions of the cluster."""


@pytest.fixture(scope="module")
def node() -> Iterator[SecuredOpenSearch]:
    """With a user for each role, one without any, and an index of another application."""
    with secured_opensearch() as node:
        for user in (*ROLES, "nobody"):
            node.issue(user)
        answers = [node.administrator.put(f"{USERS}/{user}", json={"password": PASSWORD}) for user in ROLES]
        assert_all_succeeded([*answers, node.administrator.put("/payroll/_doc/1", json={"salary": 1})])
        asyncio.run(make_roles(connect_by_certificate(node, "administrator"), print))
        yield node


@pytest.fixture(scope="module")
def kafka() -> Iterator[embedded.Backends]:
    with reused_backends.taken(only="kafka") as servers:
        yield servers


def test_from_an_attempt_to_the_answer(node: SecuredOpenSearch, kafka: embedded.Backends, tmp_path: Path) -> None:
    """The worker, which makes attempts of decisions, does not know OpenSearch."""
    asyncio.run(provision(build_provision_settings(kafka, connect_by_password(node, PROVISIONER)), timedelta(0), print))
    ports = find_free_ports("index", "placements")
    with ForkedProcesses(tmp_path, {"SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers}) as processes:
        services = Pipeline(kafka, processes, 0)
        writers = {"index": connect_by_password(node, WRITER), "placements": connect_by_certificate(node, WRITER)}
        for name, connection in writers.items():
            address_options = ("--metrics-address", ports[name])
            processes.start(name, "pipeline", name, *address_options, **write_environment(connection))
        attempts = [an_attempt(f"ml/{pod}", chosen="node1", bound=True, devices=["GPU-0"]) for pod in ("one", "two")]
        Filling(kafka.bootstrap_servers, node.url).publish(*attempts)
        for name, port in ports.items():
            processes.wait_ready(name, f"http://127.0.0.1:{port}/readyz")
        services.settle_group("schedulerlog-index", [ATTEMPTS])
        services.settle_group("schedulerlog-placements", [ATTEMPTS])
    # The first of the nodes is away.
    reader = connect_by_certificate(node, READER, opensearch_url=f"https://127.0.0.1:9,{node.url}")
    with serving(kafka.bootstrap_servers, node.url, **write_environment(reader)) as api:
        assert until(api.is_ready)
        assert api.get_schedulerlog("ml/one").json()["status"] == "succeeded"
        first = until(lambda: api.get("/api/v1/schedulerlogs", limit="1").json(), lambda page: page["total"] == 2)
        second = api.get("/api/v1/schedulerlogs", limit="1", **{"continue": first["continue"]}).json()
        assert {item["name"] for page in (first, second) for item in page["items"]} == {"one", "two"}
        assert [pod["name"] for pod in api.get("/api/v1/nodes/node1/occupancy").json()["pods"]] == ["one", "two"]


def test_every_credential_is_replaced_under_load_and_no_attempt_and_no_answer_is_lost(
    node: SecuredOpenSearch, kafka: embedded.Backends, tmp_path: Path
) -> None:
    """An index writer and the API each have a password, another index writer of the same group has a certificate, and
    all of them trust what the file of authorities holds.
    """
    asyncio.run(provision(build_provision_settings(kafka, connect_by_password(node, PROVISIONER)), timedelta(0), print))
    ports = find_free_ports("index", "certified")
    before, after = node.authority, Authority.create("schedulerlog embedded, of later")
    filling = Filling(kafka.bootstrap_servers, node.url)
    refusals: list[str] = []
    with ExitStack() as stack:
        proxy = stack.enter_context(TcpProxy(lambda: node.port))
        address = {"opensearch_url": f"https://127.0.0.1:{proxy.port}"}
        environment = {"SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers, "SCHEDULERLOG_MAX_BACKOFF": "1"}
        variables = write_environment(connect_by_password(node, WRITER, **address))
        pair = {"opensearch_cert_file": tmp_path / "tls.crt", "opensearch_key_file": tmp_path / "tls.key"}

        def write_pair() -> None:
            """Write the certificate and its key into the files of their process, as a kubelet replaces them."""
            for file, content in zip(pair.values(), node.authority.issue(WRITER, usages=CLIENT), strict=True):
                file.write_bytes(content)

        write_pair()
        by_certificate = write_environment(connect_by_certificate(node, WRITER, **pair, **address))
        processes = stack.enter_context(ForkedProcesses(tmp_path, environment))
        for name, of_process in (("index", variables), ("certified", by_certificate)):
            options = ("--metrics-address", ports[name], "--group", "schedulerlog-index-rotated")
            processes.start(name, "pipeline", "index", *options, **of_process)
        for name, port in ports.items():
            processes.wait_ready(name, f"http://127.0.0.1:{port}/readyz")
        reader = write_environment(connect_by_password(node, READER, **address))
        api = stack.enter_context(serving(kafka.bootstrap_servers, address["opensearch_url"], **reader))
        assert until(api.is_ready)
        pids = {name: processes.get_pid(name) for name in ports}

        def publish(number: int) -> None:
            filling.publish(an_attempt(f"rotated/pod-{number}", chosen="node1", bound=True, devices=["GPU-0"]))

        def ask(_number: int) -> None:
            """Ask as a client that comes again when the API names a time."""
            while (answer := api.get("/api/v1/schedulerlogs", namespace="rotated", limit="1")).status_code == 503:
                refusals.append(answer.json()["error"])
                time.sleep(float(answer.headers["Retry-After"]))
            assert answer.json()["items"][0]["namespace"] == "rotated"

        def read_refusal(name: str = "index") -> str:
            # As the probe of its pod asks.
            answer = httpx.get(f"http://127.0.0.1:{ports[name]}/readyz/credentials", timeout=30)
            assert (answer.status_code == 200) == (answer.text == "ok\n")
            return answer.text

        def change_passwords(password: str) -> None:
            users = [
                node.administrator.put(f"{USERS}/{user}", json={"password": password}) for user in (WRITER, READER)
            ]
            assert_all_succeeded(users)

        def serve_certificate(authority: Authority) -> None:
            """Let OpenSearch show a certificate of the authority, and end its connections, as a restart does."""
            node.reload_certificates(authority)
            proxy.cut()

        def trust(*authorities: Authority) -> None:
            node.ca_file.write_bytes(b"".join(authority.certificate_pem for authority in authorities))

        def forget_logins(_number: int) -> None:
            """Let OpenSearch forget the passwords that it has accepted.

            It remembers them for an hour, also one that it was checking while the password was changed: a caller who
            asks without a pause may use the password of before until then.
            """
            assert_all_succeeded([node.administrator.delete("/_plugins/_security/api/cache")])

        def wait_for_refusal(cause: str) -> None:
            """Return when the API has refused a caller for this cause."""
            eventually(lambda: asking.error or any(cause in words for words in refusals), lambda: str(refusals))

        publish(0)
        until(lambda: count_rotated(node))
        stack.callback(change_passwords, PASSWORD)
        with steady_load(lambda number: publish(number + 1), per_second=20) as load, steady_load(ask, 20) as asking:
            load.wait_for_steps(5)
            change_passwords("another-Horse-8-x")
            with steady_load(forget_logins, per_second=1):
                until(read_refusal, lambda words: "HTTP 401: OpenSearch refuses user" in words)
                wait_for_refusal("HTTP 401: Unauthorized")
            Path(variables["SCHEDULERLOG_OPENSEARCH_PASSWORD_FILE"]).write_text("another-Horse-8-x")
            until(read_refusal, lambda words: words == "ok\n")
            # All trust both authorities until no certificate is of the one of before.
            trust(before, after)
            serve_certificate(before)
            node.authority = after
            for user in ("administrator", "nobody", *ROLES):
                node.issue(user)
            serve_certificate(after)
            trust(after)
            serve_certificate(after)
            # OpenSearch does not trust the certificate of before any more.
            until(lambda: read_refusal("certified"), lambda words: "it refuses our certificate" in words)
            write_pair()
            until(lambda: read_refusal("certified"), lambda words: words == "ok\n")
            asking.wait_for_steps(5)
            assert read_refusal() == "ok\n"
            # No connection trusts the authority of before any more.
            serve_certificate(before)
            until(read_refusal, lambda words: "its certificate is not trusted" in words)
            wait_for_refusal("certificate verify failed")
            serve_certificate(after)
            until(read_refusal, lambda words: words == "ok\n")
            load.wait_for_steps(5)
            asking.wait_for_steps(5)
        until(lambda: count_rotated(node), lambda number: number > load.steps)
        assert count_rotated(node) == load.steps + 1
        processes.check()
        assert {name: processes.get_pid(name) for name in ports} == pids
        assert api.process
        assert api.process.poll() is None


def count_rotated(node: SecuredOpenSearch) -> int:
    node.administrator.post("/schedulerlog-attempts/_refresh")
    query = {"query": {"term": {"namespace": "rotated"}}}
    number: int = node.administrator.post("/schedulerlog-attempts/_count", json=query).json().get("count", 0)
    return number


async def test_a_process_whose_password_came_from_a_variable_ends_where_it_is_refused(
    node: SecuredOpenSearch, kafka: embedded.Backends, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refused_credentials, "LIMIT_SECONDS", 2.0)
    # Other tests of this process have stores of their own.
    monkeypatch.setattr(refused_credentials, "_by_variable", {})
    connection = connect_by_password(node, WRITER, "of-yesterday-Horse-9")
    settings = build_settings(IndexSettings, connection, kafka_bootstrap_servers=kafka.bootstrap_servers)
    with pytest.raises(FixedCredentialsError, match=r"HTTP 401.*SCHEDULERLOG_OPENSEARCH_PASSWORD is read only"):
        await run_index(settings, "schedulerlog-index-refused")


async def test_each_role_is_enough_for_its_processes(node: SecuredOpenSearch) -> None:
    await make_templates(node)
    # A writer that lacks a right waits for it.
    await asyncio.wait_for(write(node), PATIENCE_SECONDS)
    await read(connect_by_certificate(node, READER))
    await provide(node, connect_by_certificate(node, PROVISIONER))


@run_in_make_stress
@pytest.mark.parametrize(("role", "position", "permission"), PERMISSIONS)
def test_without_one_of_its_permissions_a_role_is_not_enough(
    node: SecuredOpenSearch, role: str, position: int, permission: str
) -> None:
    less = copy.deepcopy(ROLES[role])
    lists = [less["cluster_permissions"], *(item["allowed_actions"] for item in less["index_permissions"])]
    lists[position].remove(permission)
    connection = connect_by_certificate(node, role)
    work = {
        WRITER: lambda: write(node),
        READER: lambda: read(connection),
        PROVISIONER: lambda: provide(node, connection),
    }
    node.administrator.delete("/schedulerlog-*")
    asyncio.run(make_templates(node))
    if role != WRITER:
        asyncio.run(write(node))
    try:
        assert_all_succeeded([node.administrator.put(f"{ROLES_API}/{role}", json=less)])
        with pytest.raises(Exception):  # noqa: B017, PT011 - refused, out of time, or an answer that lacks something
            asyncio.run(asyncio.wait_for(work[role](), 3))
    finally:
        assert_all_succeeded([node.administrator.put(f"{ROLES_API}/{role}", json=ROLES[role])])


@pytest.mark.parametrize(
    ("user", "method", "path"),
    [
        (READER, "PUT", f"/{DAY}/_doc/1"),
        (READER, "DELETE", f"/{DAY}"),
        (READER, "POST", f"/{DAY}/_delete_by_query"),
        (READER, "PUT", "/_index_template/schedulerlog-attempts"),
        (READER, "GET", "/payroll/_search"),
        (WRITER, "DELETE", f"/{DAY}"),
        (WRITER, "POST", f"/{DAY}/_delete_by_query"),
        (WRITER, "PUT", "/_index_template/schedulerlog-attempts"),
        (WRITER, "GET", "/_cat/indices/schedulerlog-*"),
        (WRITER, "GET", "/payroll/_search"),
        (WRITER, "PUT", "/payroll/_doc/2"),
        (PROVISIONER, "PUT", f"/{DAY}/_doc/1"),
        (PROVISIONER, "DELETE", "/payroll"),
        (PROVISIONER, "GET", "/payroll/_search"),
        (PROVISIONER, "GET", USERS),
        ("nobody", "GET", "/schedulerlog-*/_search"),
    ],
)
async def test_what_a_role_is_not_for_is_refused(node: SecuredOpenSearch, user: str, method: str, path: str) -> None:
    client = create_client(connect_by_certificate(node, user))
    # What can't be understood would be refused as such.
    body: dict[str, Any] = {"index_patterns": ["x-*"]} if "template" in path else {"query": {"match_all": {}}}
    try:
        with pytest.raises(AuthorizationException):
            await client.transport.perform_request(method, path, body=None if method in ("GET", "DELETE") else body)
    finally:
        await client.close()


def build_provision_settings(kafka: embedded.Backends, connection: OpenSearchConnection) -> ProvisionSettings:
    return build_settings(ProvisionSettings, connection, kafka_bootstrap_servers=kafka.bootstrap_servers)


def get_provision_error(node: SecuredOpenSearch, kafka: embedded.Backends, connection: OpenSearchConnection) -> str:
    """Return the message with which ``provision`` ends, long before it would give up on a store that is down."""
    with pytest.raises(UnreachableError) as refused:
        asyncio.run(provision(build_provision_settings(kafka, connection), timedelta(hours=1), print))
    return str(refused.value).partition(f"OpenSearch at {node.url}: ")[2]


def test_a_refusal_ends_a_command_with_its_cause_and_the_next_step(
    node: SecuredOpenSearch, kafka: embedded.Backends, tmp_path: Path
) -> None:
    wrong = get_provision_error(node, kafka, connect_by_password(node, PROVISIONER, "not-Its-password-1"))
    assert wrong == (
        "AuthenticationException(401, 'Unauthorized'): correct SCHEDULERLOG_OPENSEARCH_USERNAME and its password, or "
        "the client certificate"
    )
    missing = get_provision_error(node, kafka, connect_by_certificate(node, "nobody"))
    assert "no permissions for [cluster:admin/component_template/put]" in missing
    assert missing.endswith(": its user needs the role schedulerlog-provisioner")
    other = tmp_path / "other.crt"
    other.write_bytes(Authority.create("another").certificate_pem)
    unknown = get_provision_error(node, kafka, connect_by_password(node, PROVISIONER, opensearch_ca_file=other))
    assert "certificate verify failed" in unknown
    assert unknown.endswith(": name the authority that signed its certificate in SCHEDULERLOG_OPENSEARCH_CA_FILE")
    files = {"opensearch_cert_file": tmp_path / "tls.crt", "opensearch_key_file": tmp_path / "tls.key"}
    for file, content in zip(files.values(), Authority.create("another").issue(PROVISIONER), strict=True):
        file.write_bytes(content)
    distrusted = get_provision_error(node, kafka, connect_by_certificate(node, PROVISIONER, **files))
    assert distrusted.endswith(": correct SCHEDULERLOG_OPENSEARCH_CERT_FILE and its key, which it does not trust")
    with pytest.raises(UnreachableError, match="its user needs all rights in its security plugin"):
        asyncio.run(make_roles(connect_by_certificate(node, READER), print))


async def test_doctor_finds_nothing_wrong_where_a_user_may_not_look(node: SecuredOpenSearch) -> None:
    await make_templates(node)
    parts = {user: await check(connect_by_certificate(node, user)) for user in (READER, WRITER, PROVISIONER)}
    assert {user: faults for user, (faults, _) in parts.items() if faults} == {}
    unseen = {user: {line.split(": ")[1] for line in lines} for user, (_, lines) in parts.items()}
    assert unseen == {
        READER: {"its health", "its index templates", "its shards", "its clock"},
        WRITER: {"its version", "its health", "its shards", "its clock"},
        PROVISIONER: set(),
    }
    ((fault,), _) = await check(connect_by_certificate(node, "nobody"))
    assert fault.remedy == "Its user needs the role schedulerlog-provisioner."


async def test_a_writer_without_its_role_waits_and_says_what_it_needs(
    node: SecuredOpenSearch, caplog: pytest.LogCaptureFixture
) -> None:
    await make_templates(node)
    waiting = asyncio.create_task(write(node, connect_by_certificate(node, "nobody")))
    await eventually_async(lambda: caplog.messages)
    assert "no permissions for [indices:admin/index_template/get]" in caplog.messages[0]
    assert "its user needs the role schedulerlog-writer. Nothing is lost" in caplog.messages[0]
    mapping = f"/_plugins/_security/api/rolesmapping/{WRITER}"
    assert_all_succeeded([node.administrator.put(mapping, json={"users": [WRITER, "nobody"]})])
    await waiting
    # Made again, a role takes its permissions, and leaves to whom the operator has given it.
    lines: list[str] = []
    await make_roles(connect_by_certificate(node, "administrator"), lines.append)
    assert lines[0] == "role schedulerlog-writer: written, its mapping is left as it is"
    await write(node, connect_by_certificate(node, "nobody"))


async def test_the_api_names_the_role_that_its_user_lacks(node: SecuredOpenSearch) -> None:
    with pytest.raises(IndexRefusedError, match="its user needs the role schedulerlog-reader"):
        await read(connect_by_certificate(node, "nobody"))
