"""H7: all services on a Kafka with TLS, SASL, client certificates and ACLs; each may do what deploy/ grants it."""

import asyncio
import os
import shutil
from collections.abc import Callable, Coroutine, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from cli.doctor.findings import Fault
from cli.doctor.kafka import check
from dev.embedded.control_plane.credentials import build_kubeconfig as nowhere
from pipeline.admin.dead_letters import replay
from pipeline.alerts import process as alerts
from pipeline.dead_letter import to_dead_letter
from runtime import refused_credentials
from runtime.errors import FixedCredentialsError, UnreachableError
from runtime.kafka.errors import explain_kafka_error
from runtime.kafka.inspection import read_committed_offsets, read_end_offsets
from runtime.kafka.record import Record
from runtime.kafka.topics import describe_missing_topics, list_topic_names
from runtime.settings.kafka_connection import KafkaConnection
from runtime.settings.settings import read
from schemas.topics import (
    ALERTS,
    ATTEMPTS,
    DECISIONS,
    MESSAGES,
    NODE_STATES,
    PODS,
    RAW_LOGS,
    TOPICS,
    TRENDS,
    Topic,
)
from tests.support.backends import Addresses, read_source
from tests.support.builders.kube_objects import a_pod
from tests.support.harness.forked import ForkedProcesses
from tests.support.harness.scheduler_process import a_refused_pod
from tests.support.harness.steady_load import steady_load
from tests.support.secured_kafka.broker import SecuredKafka, secured_kafka
from tests.support.secured_kafka.refusals import FORBIDDEN_TO_THE_API, REFUSALS
from tests.support.secured_kafka.rights import (
    PROVISION,
    Decision,
    Right,
    grant,
    parse_decisions,
    read_deployed_rights,
)
from tests.support.secured_kafka.services import Services, Settings, Way, services, spoil, write_flags
from tests.support.stress import IS_STRESS, run_in_make_stress
from tests.support.waiting import eventually, until

PROPOSAL: Final = Path("tests/unit/ingest/readers/hami/cases/scheduler-event-proposal.log").resolve()
API: Final = "schedulerlog-api"
API_TOPICS: Final = {ATTEMPTS.name, PODS.name, NODE_STATES.name, ALERTS.name}
"""Topics that the API reads."""
RIGHTS: Final = read_deployed_rights()
LEASED: Final = ("kube-events", "hami-log", "kai-log")
"""Readers of which one reads, and the others wait by the group of a lease."""
BY_PASSWORD: Final = ("provision", "worker", "api")
REFUSED: Final = "invalid credentials with SASL mechanism SCRAM-SHA-512"
CAUSES: Final = {
    "worker": REFUSED,
    "index": "it refuses our certificate",
    "api": "the broker refuses the token",
    "scheduler": "HTTP 401 without a token invalid_client",
    "authority": "its certificate is not trusted",
}
"""Causes of refusals, by the process whose credential is of before."""
SELDOM: Final = {
    # Findings are published where records contradict each other.
    "worker": {Right("topic", "schedulerlog.findings", "Write")},
    "index": {Right("topic", "schedulerlog.findings", "Write")},
    "placements": {Right("topic", "schedulerlog.findings", "Write")},
    # Pods are published where the API server is followed.
    "scheduler": {Right("topic", "schedulerlog.pods", "Write")},
    # This log has only decisions and states. All commands that read something publish by the same sink.
    "hami-log": {Right("topic", f"schedulerlog.{name}", "Write") for name in ("pods", "nodes", "schedulers")},
    "alerts": {Right("topic", "schedulerlog.alerts", "Write")},
    "raw-logs": {right for right in RIGHTS["schedulerlog-raw-logs"] if right.operation == "Write"},
}
"""Rights that one attempt need not use. That the process asks for the topic is checked all the same."""


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    if read_source(os.environ) != "embedded":
        pytest.skip("needs a broker whose rules the test makes")
    rights = RIGHTS | {"schedulerlog-provision": PROVISION}
    # Of each password Java derives a key when the broker is formatted.
    users = list(rights) if IS_STRESS else [f"schedulerlog-{name}" for name in BY_PASSWORD]
    with secured_kafka(tmp_path_factory.mktemp("secured"), users) as kafka:
        asyncio.run(grant(kafka.plain, rights))
        yield kafka


def list_unused(seen: set[Decision], name: str) -> set[Right]:
    """List the unused of the rights that deploy/ gives to a process."""
    mine = [decision for decision in seen if decision.user == f"schedulerlog-{name}" and decision.is_allowed]
    return {right for right in RIGHTS[f"schedulerlog-{name}"] if not any(map(right.is_for, mine))}


def wait_until_used(kafka: SecuredKafka, name: str) -> None:
    """Return when the process has used the rights that an attempt and a record that is no event need."""
    until(
        lambda: list_unused(parse_decisions(kafka.broker.log.read_text()), name) - SELDOM.get(name, set()),
        lambda unused: not unused,
    )


async def send_garbage(kafka: SecuredKafka) -> None:
    """Send a record that is no event to each of three topics: all that read them have to dead-letter it."""
    async with AIOKafkaProducer(bootstrap_servers=kafka.plain) as producer:
        for topic in (DECISIONS, ATTEMPTS, MESSAGES):
            await producer.send_and_wait(topic.name, b"?", key=b"garbage")


def pass_an_attempt(kafka: SecuredKafka, running: Services, namespace: str) -> None:
    """Pass an attempt from the decision to the answer and to the index; then garbage to the dead letters, and a log to
    Kafka.
    """
    pod = a_pod("bound", namespace=namespace, uid=f"{namespace}-1")
    for _ in range(2):  # the second time the worker compares it with the first, which it reads where it is published
        node = running.scheduler.filter(pod)["NodeNames"][0]
        answer = until(lambda: running.api.get_schedulerlog(f"{namespace}/bound"), lambda got: got.is_success)
    assert running.scheduler.bind(pod, node) == {"Error": ""}
    assert node in {item["name"] for item in answer.json()["filter"]["nodes"]}
    eventually(lambda: running.list_pods(namespace))
    running.processes.run(
        "hami-log", "ingest", "hami-log", str(PROPOSAL), "--lease", f"schedulerlog-hami-log-{namespace}",
        *write_flags(running.get_settings("hami-log")),
    )  # fmt: skip
    asyncio.run(send_garbage(kafka))
    wait_until_used(kafka, "worker")
    wait_until_used(kafka, "index")
    # Its reader of pods was refused at first as well, and tries again by itself.
    wait_until_used(kafka, "api")


@pytest.fixture(scope="module")
def running(kafka: SecuredKafka, backends: Addresses, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """All services, of which each proves in some way who it is."""
    ways: dict[str, Way] = {
        "provision": kafka.use_scram, "scheduler": kafka.use_client_credentials,
        "worker": kafka.use_scram, "index": kafka.use_certificate,
        "hami-log": kafka.use_certificate, "api": lambda user: kafka.use_oauth(user, token),
    }  # fmt: skip
    folder = tmp_path_factory.mktemp("services")
    token = kafka.write_token_file(folder / "token", API, seconds=-100)
    with services(folder, backends.opensearch_url, ways) as running:
        # The service waits, and uses the token that replaces the one that has ended.
        eventually(lambda: "the broker refuses the token" in running.api.get_part("attempts_topic")["why_not"])
        kafka.write_token_file(token, API)
        eventually(lambda: running.api.get_part("attempts_topic")["ready"])
        yield running


@pytest.fixture(scope="module")
def seen(kafka: SecuredKafka, running: Services) -> set[Decision]:
    """Decisions of the authorizer while an attempt passed all services."""
    pass_an_attempt(kafka, running, "secured")
    return parse_decisions(kafka.broker.log.read_text())


def test_an_attempt_passes_from_the_decision_to_the_answer_and_no_right_was_missing(seen: set[Decision]) -> None:
    assert {decision for decision in seen if not decision.is_allowed} == set()


@pytest.mark.parametrize("name", ["scheduler", "hami-log", "worker", "index", "api"])
def test_each_right_of_a_user_is_used(seen: set[Decision], name: str) -> None:
    granted = RIGHTS[f"schedulerlog-{name}"]
    assert list_unused(seen, name) <= SELDOM.get(name, set())
    asked_for = {
        decision.name for decision in seen if decision.user == f"schedulerlog-{name}" and decision.request == "Metadata"
    }
    assert asked_for >= {right.name for right in granted if right.kind == "topic"}


@run_in_make_stress
@pytest.mark.parametrize("way", ["scram", "certificate", "oauth"])
def test_every_process_proves_who_it_is_in_the_same_way(
    kafka: SecuredKafka, backends: Addresses, tmp_path: Path, way: str
) -> None:
    ways: dict[str, Way] = dict.fromkeys(
        (user.removeprefix("schedulerlog-") for user in RIGHTS), getattr(kafka, f"use_{way}")
    )
    before = len(kafka.broker.log.read_text())

    def log() -> set[Decision]:
        return parse_decisions(kafka.broker.log.read_text()[before:])

    # Nobody listens there: what is read from Kafka waits.
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(nowhere("https://127.0.0.1:1", kafka.authority.ca_file.read_text(), "token"))
    with services(tmp_path, backends.opensearch_url, ways | {"provision": getattr(kafka, f"use_{way}")}) as running:
        pass_an_attempt(kafka, running, f"secured-{way}")
        # Placements would write what they find of other tests' pods: not into their index.
        running.processes.stop("index")
        running.start("placements")
        running.start("alerts")
        for name, arguments in {
            "alertmanager": ("pipeline", "alertmanager", "--url", "http://127.0.0.1:1"),
            "events": ("pipeline", "events", "--kubeconfig", str(kubeconfig)),
            "raw-logs": ("ingest", "raw-logs"),
        }.items():
            running.processes.start(name, *arguments, **running.get_settings(name))
        for name in ("worker", "placements", "alerts", "alertmanager", "events", "raw-logs"):
            until(
                lambda name=name: list_unused(log(), name) - SELDOM.get(name, set()),  # type: ignore[misc]
                lambda unused: not unused,
            )
    assert {decision for decision in log() if not decision.is_allowed} == set()


def test_every_credential_for_kafka_is_replaced_under_load_and_no_attempt_is_lost(
    kafka: SecuredKafka, running: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker has a password, the index writer a certificate, the scheduler a client secret, the API a token; and
    all of them the broker's authority.

    The broker begins with the new ones, so each process is refused until its file has them too.
    """
    pids = {name: running.processes.get_pid(name) for name in ("worker", "index")}
    settings = {name: running.get_settings(name) for name in ("worker", "index", "scheduler", "api")}
    before = {name: copy_credentials(of_process, tmp_path / name) for name, of_process in settings.items()}
    authority = {"SCHEDULERLOG_KAFKA_CA_FILE": str(shutil.copy(kafka.authority.ca_file, tmp_path))}

    def pass_attempt(number: int) -> None:
        # More than any node has: the nodes would be full before the end of the load.
        assert not running.scheduler.filter(a_refused_pod(f"pod-{number}", "rotated"))["NodeNames"]
        # An attempt of before: the API answers also while Kafka refuses it.
        assert running.api.get_schedulerlog("rotated-before/first").is_success

    def read_refusal(name: str) -> str:
        return running.read_readiness(name, "/credentials")

    running.scheduler.filter(a_refused_pod("first", "rotated-before"))
    until(lambda: running.api.get_schedulerlog("rotated-before/first"), lambda answer: answer.is_success)
    with steady_load(pass_attempt, per_second=20) as load:
        load.wait_for_steps(20)
        kafka.change_password("schedulerlog-worker", "battery-staple")
        kafka.clients.secret = "battery-staple"  # noqa: S105 - of this test
        kafka.restart_with_another_authority()
        until(lambda: read_refusal("worker"), lambda words: CAUSES["worker"] in words)
        until(lambda: read_refusal("index"), lambda words: CAUSES["index"] in words)
        until(lambda: running.api.get_part("attempts_topic")["why_not"], lambda words: CAUSES["api"] in words)
        until(running.scheduler.log.read_text, lambda log: CAUSES["scheduler"] in log)
        # Into the same files, as a kubelet replaces them.
        kafka.use_scram("schedulerlog-worker")
        kafka.use_certificate("schedulerlog-index")
        kafka.use_client_credentials("schedulerlog-scheduler")
        kafka.write_token_file(Path(settings["api"]["SCHEDULERLOG_KAFKA_OAUTH_TOKEN_FILE"]), API)
        for name in pids:
            until(lambda name=name: read_refusal(name), lambda words: words == "ok")  # type: ignore[misc]
        until(lambda: running.api.get_part("attempts_topic"), lambda part: part["ready"])
        load.wait_for_steps(20)
    until(lambda: running.list_pods("rotated"), lambda pods: len(pods) >= load.steps)
    assert running.list_pods("rotated") == sorted(f"pod-{number}" for number in range(load.steps))
    assert running.api.get_schedulerlog(f"rotated/pod-{load.steps - 1}").is_success
    running.processes.check()
    assert {name: running.processes.get_pid(name) for name in pids} == pids
    before["authority"] = settings["worker"] | authority
    words = {name: get_refusal_of(of_before, monkeypatch) for name, of_before in before.items()}
    assert all(cause in words[name] for name, cause in CAUSES.items()), words


async def test_a_process_whose_password_came_from_a_variable_ends_where_it_is_refused(
    kafka: SecuredKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refused_credentials, "LIMIT_SECONDS", 2.0)
    # Other tests of this process have stores of their own.
    monkeypatch.setattr(refused_credentials, "_by_variable", {})
    settings = kafka.use_scram("schedulerlog-worker")
    del settings["SCHEDULERLOG_KAFKA_PASSWORD_FILE"]
    for name, value in {**settings, "SCHEDULERLOG_KAFKA_PASSWORD": "of-yesterday"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(FixedCredentialsError, match=f"{REFUSED}.*SCHEDULERLOG_KAFKA_PASSWORD is read only"):
        await alerts.run(alerts.Settings(read(KafkaConnection), "schedulerlog-alerts-refused", [], None))


@pytest.mark.parametrize(
    ("name", "group", "topic"),
    [("worker", "schedulerlog-pipeline", DECISIONS), ("index", "schedulerlog-index", ATTEMPTS)],
)
@pytest.mark.usefixtures("seen")
def test_the_user_of_a_process_sees_the_lag_that_keda_asks_for(
    kafka: SecuredKafka, name: str, group: str, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KEDA's scaler asks for the topic's partitions, the group's offsets and the ends of the partitions."""
    connection = read_connection(kafka.use_certificate(f"schedulerlog-{name}"), monkeypatch)
    ends = asyncio.run(read_end_offsets(connection, topic.name))
    offsets = asyncio.run(read_committed_offsets(connection, group, ends))
    assert len(ends) == topic.partitions
    assert 0 < sum(offsets.values()) <= sum(ends.values())


def test_all_that_publish_what_they_read_have_the_same_rights() -> None:
    sent = RIGHTS["schedulerlog-scheduler"]
    for name in LEASED:
        assert RIGHTS[f"schedulerlog-{name}"] == sent | {
            Right("topic", "schedulerlog.alerts", "Describe"),
            Right("group", f"schedulerlog-{name}-", "Read", "prefix"),
        }
    assert RIGHTS["schedulerlog-raw-logs"] - sent == {
        Right("topic", "schedulerlog.raw-logs", "Read"), Right("group", "schedulerlog-ingest-raw-logs", "Read"),
    }  # fmt: skip


def test_provision_needs_what_the_documents_list(seen: set[Decision]) -> None:
    mine = {decision for decision in seen if decision.user == "schedulerlog-provision"}
    assert {decision.operation for decision in mine} <= {right.operation for right in PROVISION} | {"Describe"}
    assert "schedulerlog.decisions" in {decision.name for decision in mine if decision.operation == "Create"}


@run_in_make_stress
@pytest.mark.usefixtures("seen")
def test_provision_corrects_topics_with_its_rights(kafka: SecuredKafka, backends: Addresses, tmp_path: Path) -> None:
    asyncio.run(spoil(kafka.plain, RAW_LOGS, TRENDS))
    settings = kafka.use_scram("schedulerlog-provision") | {"SCHEDULERLOG_OPENSEARCH_URL": backends.opensearch_url}
    with ForkedProcesses(tmp_path, settings) as processes:
        processes.run("provision", "pipeline", "provision")
    mine = {
        decision
        for decision in parse_decisions(kafka.broker.log.read_text())
        if decision.user == "schedulerlog-provision"
    }
    used = {(decision.operation, decision.name) for decision in mine if decision.is_allowed}
    assert used >= {("Alter", RAW_LOGS.name), ("AlterConfigs", TRENDS.name), ("DescribeConfigs", TRENDS.name)}


def read_connection(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> KafkaConnection:
    """Read the connection as a process does."""
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    return read(KafkaConnection)


@pytest.mark.parametrize("way", ["scram", "plain_password", "oauth", "client_credentials", "certificate"])
@pytest.mark.usefixtures("seen")
def test_a_user_sees_the_topics_of_its_rights(kafka: SecuredKafka, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings: Settings = getattr(kafka, f"use_{way}")(API)
    assert {*asyncio.run(list_topic_names(read_connection(settings, monkeypatch)))} == API_TOPICS


def copy_credentials(settings: Settings, folder: Path) -> Settings:
    """Copy what proves who a process is, and return the settings that name the copies."""
    folder.mkdir()
    proofs = {name: path for name, path in settings.items() if name.endswith("_FILE") and "_CA_" not in name}
    return settings | {name: str(shutil.copy(path, folder)) for name, path in proofs.items()}


def get_refusal_of(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the words in which the broker refuses who has these settings."""
    with monkeypatch.context() as patched:
        return str(asyncio.run(get_refusal(list_topic_names(read_connection(settings, patched)))))


async def get_refusal(work: Coroutine[None, None, object], kind: type[Exception] = KafkaError) -> Exception:
    """Return its error; the sockets that it left are closed."""
    with pytest.raises(kind) as refused:
        await work
    # The client closes them, and does not wait for that.
    await asyncio.sleep(0.05)
    return refused.value


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_names_its_cause_and_what_to_do(
    kafka: SecuredKafka, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, cause, remedy = REFUSALS[name]
    words = str(
        asyncio.run(get_refusal(list_topic_names(read_connection(settings(kafka, API, tmp_path), monkeypatch))))
    )
    assert cause in words
    assert remedy in words


@pytest.mark.parametrize("work", FORBIDDEN_TO_THE_API)
@pytest.mark.usefixtures("seen")
def test_a_right_that_is_missing_is_named(
    kafka: SecuredKafka, work: Callable[[KafkaConnection], Coroutine[None, None, None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = explain_kafka_error(asyncio.run(get_refusal(work(read_connection(kafka.use_scram(API), monkeypatch)))))
    assert "AuthorizationFailedError" in words
    assert words.endswith("give this user the right, docs/security.md lists them")


@pytest.mark.usefixtures("seen")
def test_topics_that_a_user_may_not_see_are_named(kafka: SecuredKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    topics = asyncio.run(list_topic_names(read_connection(kafka.use_scram(API), monkeypatch)))
    line = describe_missing_topics([ATTEMPTS.name, DECISIONS.name], topics)
    assert line.startswith("Kafka has no topic schedulerlog.decisions: run `schedulerlog pipeline provision`")
    assert line.endswith("(or this user may not see it: docs/security.md lists the rights)")


@pytest.mark.usefixtures("seen")
def test_doctor_finds_nothing_wrong_where_a_user_may_not_look(
    kafka: SecuredKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check_and_close() -> tuple[list[Fault], list[str]]:
        checked = await check(read_connection(kafka.use_scram(API), monkeypatch))
        # As in `get_refusal`.
        await asyncio.sleep(0.05)
        return checked

    faults, unseen = asyncio.run(check_and_close())
    assert faults == []
    assert [line.partition(": a user that may")[0] for line in unseen] == [
        f"Kafka: whether {len(TOPICS) - len(API_TOPICS)} of {len(TOPICS)} topics are there",
        f"Kafka: the settings of {len(API_TOPICS)} topics",
        (
            "Kafka: how far our processes have read: no group schedulerlog-* has committed an offset, or this user may "
            "not describe groups"
        ),
    ]


async def send_dead_letter(kafka: SecuredKafka) -> None:
    """Send a dead letter of the topic of decisions, as a worker does."""
    letter = to_dead_letter(Record(DECISIONS.name, 0, 0, b"key", b"?", []), "no event", datetime.now(UTC))
    async with AIOKafkaProducer(bootstrap_servers=kafka.plain) as producer:
        await producer.send_and_wait(letter.topic, letter.value, key=letter.key, headers=letter.headers)


@pytest.mark.usefixtures("seen")
def test_a_replay_without_the_right_ends_with_its_cause(kafka: SecuredKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    asyncio.run(send_dead_letter(kafka))
    connection = read_connection(kafka.use_certificate("schedulerlog-alerts"), monkeypatch)
    words = str(asyncio.run(get_refusal(replay(connection, None, print), UnreachableError)))
    assert "TopicAuthorizationFailedError" in words
    assert words.endswith("give this user the right, docs/security.md lists them (replayed 0 before that)")
