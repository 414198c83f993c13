"""The empty data folder of a broker, as Kafka's own tool formats it: what KRaft requires before the first start.

The tool takes a second of CPU. Of what it writes, ``bootstrap.checkpoint`` names no cluster and no node: one that the
tool wrote is kept beside the downloaded jars and copied, and ``meta.properties`` is four lines.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
import uuid
from base64 import urlsafe_b64encode
from dataclasses import replace
from pathlib import Path
from typing import Final

from dev.embedded.jvm import Jvm, build_java_environment

CHECKPOINT: Final = "bootstrap.checkpoint"
META: Final = "meta.properties"


class FormatError(Exception):
    """Kafka's tool could not format the folder; the message is what it wrote."""


def generate_id() -> str:
    """Generate an id as Kafka writes it: 16 random bytes in base64 for URLs, unpadded, the first bit 0.

    If the first bit were 1, the id could begin with a dash, and Kafka's tools would read it as an option.
    """
    # The first of base64's 64 characters comes from the six highest bits: with the top bit 0 it is a letter.
    number = uuid.uuid4().int & ((1 << 127) - 1)
    return urlsafe_b64encode(number.to_bytes(16)).decode().rstrip("=")


def copy_formatted(log_dir: Path, node: int, cluster_id: str, jvm: Jvm) -> bool:
    """Format the folder as Kafka's tool did before with the same jars; False where it did not."""
    checkpoint = _locate_checkpoint(jvm)
    if not checkpoint.exists():
        return False
    log_dir.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(checkpoint, log_dir / CHECKPOINT)
    # Last: a folder that has this file is formatted.
    (log_dir / META).write_text(
        f"version=1\nnode.id={node}\ncluster.id={cluster_id}\ndirectory.id={generate_id()}\n", encoding="utf-8"
    )
    return True


def keep_formatted(log_dir: Path, jvm: Jvm) -> None:
    """Keep what Kafka's tool has just written into the folder, for ``copy_formatted``."""
    checkpoint = _locate_checkpoint(jvm)
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    # It gets its name when it is whole, also where two processes write it at once.
    with tempfile.NamedTemporaryFile(dir=checkpoint.parent, delete=False) as unfinished:
        unfinished.write((log_dir / CHECKPOINT).read_bytes())
    Path(unfinished.name).replace(checkpoint)


def format_with_tool(properties_file: Path, cluster_id: str, jvm: Jvm, arguments: tuple[str, ...]) -> str:
    """Run Kafka's tool on the folder that the file names; returns what it wrote. Raises FormatError."""
    # In training (``aot_cache``) Java would write an ahead-of-time cache of the tool too.
    quick = replace(jvm, flags=tuple(flag for flag in jvm.flags if not flag.startswith("-XX:AOTCacheOutput")))
    options = ("--ignore-formatted", "-t", cluster_id, "-c", str(properties_file), *arguments)
    command = quick.build_command("kafka.tools.StorageTool", "format", *options)
    environment = build_java_environment(os.environ)
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        raise FormatError(done.stdout + done.stderr)
    return done.stdout + done.stderr


def _locate_checkpoint(jvm: Jvm) -> Path:
    digest = hashlib.sha256("\0".join(map(str, jvm.class_path)).encode()).hexdigest()
    return jvm.aot_folder.with_name("kafka-format") / f"{digest[:16]}.checkpoint"
