import os
from pathlib import Path

import pytest

from dev.embedded import folder as folders
from dev.embedded.errors import EmbeddedError, NotRunningError
from dev.embedded.kafka_storage import generate_id
from dev.embedded.ports import KAFKA_PORTS, OPENSEARCH_PORTS
from dev.embedded.process import ProcessId, read_start_time
from dev.embedded.state import ServerRecord, State, plan_servers, read_state, write_state


def a_process(*, alive: bool) -> ProcessId:
    """This very process, or one with its id from another time."""
    return ProcessId(os.getpid(), read_start_time(os.getpid()) or "" if alive else "another time")


def a_broker(*, alive: bool = True, node: int = 0) -> ServerRecord:
    return ServerRecord(f"kafka-{node}", "kafka", 19_000 + node, 20_000 + node, a_process(alive=alive))


def an_opensearch(*, alive: bool = True) -> ServerRecord:
    return ServerRecord("opensearch", "opensearch", 9_250, None, a_process(alive=alive))


def test_state_is_read_back_as_written(tmp_path: Path) -> None:
    state = State("abc", (a_broker(), ServerRecord("opensearch", "opensearch", 9_250)))
    write_state(tmp_path / "new", state)
    assert read_state(tmp_path / "new") == state


def test_a_folder_where_nothing_was_started_has_no_state(tmp_path: Path) -> None:
    assert read_state(tmp_path) is None
    assert folders.list_statuses(tmp_path / "nowhere") == []
    assert folders.stop(tmp_path / "nowhere") == []
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    "damaged",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"kafka_cluster_id": "x", "servers": [{}]}',
        '{"kafka_cluster_id": "x", "servers": [{"name": "a", "kind": "redis"}]}',
        '{"kafka_cluster_id": "x", "servers": 3}',
        '{"kafka_cluster_id": "x", "servers": [{"name": "a", "kind": "kafka", "port": "y"}]}',
    ],
)
def test_a_damaged_state_says_what_to_do(tmp_path: Path, damaged: str) -> None:
    (tmp_path / "state.json").write_text(damaged)
    with pytest.raises(EmbeddedError, match=r"state\.json: cannot be read .*delete the folder"):
        read_state(tmp_path)


def test_a_process_of_another_time_counts_as_dead_and_is_left_alone(tmp_path: Path) -> None:
    write_state(tmp_path, State("abc", (a_broker(alive=False), an_opensearch(alive=False))))
    assert [(server.name, server.is_up, server.pid) for server in folders.list_statuses(tmp_path)] == [
        ("kafka-0", False, None),
        ("opensearch", False, None),
    ]
    assert folders.stop(tmp_path) == []
    after = read_state(tmp_path)
    assert after is not None
    assert [(record.port, record.process) for record in after.servers] == [(19_000, None), (9_250, None)]


def test_addresses_are_those_of_the_running_servers(tmp_path: Path) -> None:
    write_state(tmp_path, State("abc", (a_broker(), a_broker(node=1), an_opensearch())))
    assert folders.build_environment(tmp_path) == {
        "SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:19000,127.0.0.1:19001",
        "SCHEDULERLOG_OPENSEARCH_URL": "http://127.0.0.1:9250",
    }


def test_only_what_was_started_has_an_address(tmp_path: Path) -> None:
    write_state(tmp_path, State("abc", (an_opensearch(),)))
    assert folders.build_environment(tmp_path) == {"SCHEDULERLOG_OPENSEARCH_URL": "http://127.0.0.1:9250"}


def test_an_address_without_a_running_server_is_not_given(tmp_path: Path) -> None:
    with pytest.raises(NotRunningError, match=r"nothing was started in .*embedded up --dir"):
        folders.build_environment(tmp_path)
    write_state(tmp_path, State("abc", (a_broker(alive=False), an_opensearch())))
    with pytest.raises(NotRunningError, match=r"kafka-0 not running in .*embedded up --dir"):
        folders.build_environment(tmp_path)


def test_a_new_folder_gets_servers_on_different_free_ports(tmp_path: Path) -> None:
    state = plan_servers(tmp_path, None, ("kafka", "opensearch"), brokers=3)
    brokers, nodes = state.list_servers("kafka"), state.list_servers("opensearch")
    assert [record.name for record in brokers] == ["kafka-0", "kafka-1", "kafka-2"]
    ports = [port for record in brokers for port in (record.port, record.controller_port)]
    assert len(set(ports)) == 6
    assert all(port in KAFKA_PORTS for port in ports)
    assert [record.port in OPENSEARCH_PORTS for record in nodes] == [True]
    assert len(state.kafka_cluster_id) == 22


def test_ports_and_cluster_id_are_kept_and_missing_servers_added(tmp_path: Path) -> None:
    before = plan_servers(tmp_path, None, ("kafka",), brokers=1)
    after = plan_servers(tmp_path, before, ("kafka", "opensearch"), brokers=1)
    assert after.kafka_cluster_id == before.kafka_cluster_id
    assert after.list_servers("kafka") == before.list_servers("kafka")
    assert len(after.list_servers("opensearch")) == 1


def test_a_cluster_does_not_change_its_size(tmp_path: Path) -> None:
    before = plan_servers(tmp_path, None, ("kafka",), brokers=1)
    with pytest.raises(EmbeddedError, match=r"holds a Kafka of 1 broker\(s\), not 3"):
        plan_servers(tmp_path, before, ("kafka",), brokers=3)


def test_a_cluster_id_is_never_taken_for_an_option() -> None:
    ids = {generate_id() for _ in range(2000)}
    assert len(ids) == 2000
    assert not [id_ for id_ in ids if id_.startswith("-") or len(id_) != 22]
