"""A data folder that is copied is one that Kafka's tool formatted, but for what every folder has of its own."""

import os
from dataclasses import replace
from pathlib import Path

from dev.embedded.installed import install_jvms
from dev.embedded.jvm import read_settings
from dev.embedded.kafka import Address, KafkaBroker
from dev.embedded.kafka_storage import CHECKPOINT, META, generate_id

DIRECTORY_ID = "directory.id"


def read_meta(data: Path) -> dict[str, str]:
    lines = (data / META).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if not line.startswith("#"))


def test_the_copy_is_what_the_tool_writes(tmp_path: Path) -> None:
    installed = install_jvms(read_settings(os.environ), kinds=("kafka",))["kafka"]
    jvm = replace(installed, aot_folder=tmp_path / "cache" / "aot")  # nothing is kept there yet
    cluster_id = generate_id()
    folders = [tmp_path / "by the tool", tmp_path / "copied"]
    for folder in folders:
        folder.mkdir()
        KafkaBroker(folder, [Address(0, 9092, 9093)], 0, cluster_id, jvm).prepare()
    by_tool, copied = (folder / "data" for folder in folders)
    assert (folders[0] / "server.log").exists()
    assert not (folders[1] / "server.log").exists()
    assert {file.name for file in copied.iterdir()} == {file.name for file in by_tool.iterdir()} == {CHECKPOINT, META}
    assert (copied / CHECKPOINT).read_bytes() == (by_tool / CHECKPOINT).read_bytes()
    theirs, ours = read_meta(by_tool), read_meta(copied)
    assert ours.pop(DIRECTORY_ID) != theirs.pop(DIRECTORY_ID)
    assert ours == theirs == {"version": "1", "node.id": "0", "cluster.id": cluster_id}
