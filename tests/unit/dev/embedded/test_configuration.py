from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dev.embedded.errors import EmbeddedError, UnusableSettingError
from dev.embedded.jvm import Jvm, JvmSettings, build_java_environment, read_settings
from dev.embedded.kafka import Address, format_properties


def a_cluster(brokers: int) -> list[Address]:
    return [Address(node, 19_000 + node, 20_000 + node) for node in range(brokers)]


def read_properties(text: str) -> dict[str, str]:
    """Read name=value lines with \\uXXXX escapes, as java.util.Properties does."""
    pairs = (line.split("=", 1) for line in text.splitlines())
    return {
        name: value.encode("ascii").decode("unicode_escape").encode("utf-16", "surrogatepass").decode("utf-16")
        for name, value in pairs
    }


def test_a_single_broker_is_content_with_itself() -> None:
    read = read_properties(format_properties(0, a_cluster(1), Path("/data")))
    assert read["listeners"] == "PLAINTEXT://127.0.0.1:19000,CONTROLLER://127.0.0.1:20000"
    assert read["controller.quorum.voters"] == "0@127.0.0.1:20000"
    for name in ("default.replication.factor", "offsets.topic.replication.factor", "min.insync.replicas"):
        assert read[name] == "1"


def test_three_brokers_keep_three_copies_and_continue_with_two() -> None:
    read = read_properties(format_properties(2, a_cluster(3), Path("/data")))
    assert read["node.id"] == "2"
    assert read["listeners"] == "PLAINTEXT://127.0.0.1:19002,CONTROLLER://127.0.0.1:20002"
    assert read["controller.quorum.voters"] == "0@127.0.0.1:20000,1@127.0.0.1:20001,2@127.0.0.1:20002"
    assert read["default.replication.factor"] == read["transaction.state.log.replication.factor"] == "3"
    assert read["min.insync.replicas"] == read["transaction.state.log.min.isr"] == "2"


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\0,"), min_size=1))
def test_any_folder_name_survives_the_properties_file(name: str) -> None:
    folder = Path("/data", name)
    assert read_properties(format_properties(0, a_cluster(1), folder))["log.dirs"] == str(folder)


def test_a_comma_in_the_folder_would_be_two_folders_to_kafka() -> None:
    with pytest.raises(EmbeddedError, match="comma"):
        format_properties(0, a_cluster(1), Path("/data,more"))


def test_heaps_and_flags_come_from_the_environment() -> None:
    assert read_settings({}) == JvmSettings()
    assert read_settings(
        {
            "SCHEDULERLOG_EMBEDDED_KAFKA_HEAP": "2g",
            "SCHEDULERLOG_EMBEDDED_OPENSEARCH_HEAP": "1024M",
            "SCHEDULERLOG_EMBEDDED_JAVA_FLAGS": "-XX:+UseG1GC '-Da=b c'",
        }
    ) == JvmSettings("2g", "1024M", ("-XX:+UseG1GC", "-Da=b c"))
    assert read_settings({"SCHEDULERLOG_EMBEDDED_JAVA_FLAGS": ""}).flags == ()


@pytest.mark.parametrize("heap", ["512", "0m", "-1m", "lots", "1.5g", "512m -Dx=y"])
def test_a_senseless_heap_names_the_setting(heap: str) -> None:
    with pytest.raises(UnusableSettingError, match=r"SCHEDULERLOG_EMBEDDED_KAFKA_HEAP=.*512m or 2g"):
        read_settings({"SCHEDULERLOG_EMBEDDED_KAFKA_HEAP": heap})


def test_unbalanced_quotes_in_flags_name_the_setting() -> None:
    with pytest.raises(UnusableSettingError, match="SCHEDULERLOG_EMBEDDED_JAVA_FLAGS"):
        read_settings({"SCHEDULERLOG_EMBEDDED_JAVA_FLAGS": "-Da='b"})


def a_jvm(folder: Path, *flags: str) -> Jvm:
    return Jvm("512m", flags, (Path("/a.jar"), Path("/b.jar")), folder)


def test_the_command_line_holds_heap_flags_and_jars_in_order(tmp_path: Path) -> None:
    command = a_jvm(tmp_path, "-XX:+UseSerialGC").build_command("some.Main", "argument")
    assert command[1:4] == ["-Xms16m", "-Xmx512m", "-XX:+UseSerialGC"]
    assert command[-4:] == ["-cp", "/a.jar:/b.jar", "some.Main", "argument"]
    assert not [argument for argument in command if "AOT" in argument]


def test_an_ahead_of_time_cache_is_used_by_the_flags_that_it_was_written_with(tmp_path: Path) -> None:
    jvm = a_jvm(tmp_path, "-XX:+UseSerialGC")
    jvm.aot_cache.touch()
    assert f"-XX:AOTCache={jvm.aot_cache}" in jvm.build_command("some.Main")
    assert not [
        argument for argument in a_jvm(tmp_path, "-XX:+UseG1GC").build_command("some.Main") if "AOT" in argument
    ]


def test_java_options_of_the_surroundings_do_not_reach_the_servers() -> None:
    surroundings = {"JAVA_TOOL_OPTIONS": "-javaagent:x", "CLASSPATH": "y", "JDK_JAVA_OPTIONS": "-ea", "HOME": "/root"}
    assert build_java_environment(surroundings) == {"HOME": "/root", "LC_ALL": "C.UTF-8"}
