"""Faults of what runs out or is taken away: descriptors, shards, whole indices; and records that unpack to much."""

import random
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from schemas.codec.records import EncodedRecord
from tests.chaos.ground import Ground
from tests.chaos.load import Load
from tests.support.harness.small_disk import filled, mounted

_SMALL_DISK_MIB: Final = 8
_ZEROS: Final = 3 * 1024**2
"""Bytes, some hundred once packed; a record has two MiB at most."""
_MANY_ZEROS: Final = 20 * 1024**2
"""More than a batch may unpack to: its dead letter has no key, so it belongs to no namespace."""


def wait_for_pods(load: Load, chance: random.Random) -> None:
    load.wait_for(len(load.answers) + chance.randint(5, 15))


@contextmanager
def without_descriptors(pid: int) -> Iterator[None]:
    """The process can open nothing more within this context: no file, no connection."""
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    numbers = [int(path.name) for path in Path(f"/proc/{pid}/fd").iterdir()]
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (max(numbers) + 1, hard))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))


def exhaust_descriptors(ground: Ground, load: Load, chance: random.Random) -> None:
    """Leave scheduler, worker and index writer without descriptors, each in turn."""
    for name in ("scheduler", "worker", "index"):
        wait_for_pods(load, chance)
        with without_descriptors(ground.processes.get_pid(name)):
            wait_for_pods(load, chance)
            time.sleep(chance.uniform(2, 5))
    wait_for_pods(load, chance)


def fill_spool(ground: Ground, load: Load, chance: random.Random) -> None:
    """Fill the disk of the scheduler's spool: it decides, says so, and uses the disk again when that has space."""
    before = ground.spool
    wait_for_pods(load, chance)
    with mounted(ground.folder / "small-disk", _SMALL_DISK_MIB) as disk:
        ground.move_spool(disk / "spool")
        wait_for_pods(load, chance)
        with filled(disk):
            wait_for_pods(load, chance)
            ground.wait_until_spool_is("No space left on device")
            wait_for_pods(load, chance)
        ground.wait_until_spool_is("ok")
        wait_for_pods(load, chance)
        ground.move_spool(before)
    wait_for_pods(load, chance)


def send_records_that_unpack_to_much(ground: Ground, load: Load, chance: random.Random) -> None:
    """Send records of zeros, between those of the pods."""
    for size in (_ZEROS, _MANY_ZEROS, _ZEROS):
        wait_for_pods(load, chance)
        key = f"default/{load.namespace}/zeros".encode()
        ground.send(EncodedRecord(key, bytes(size), [("ce_type", b"zeros")]), compression_type="zstd")
        load.garbage += size == _ZEROS
    wait_for_pods(load, chance)


def lose_indices(ground: Ground, load: Load, chance: random.Random) -> None:
    """Delete every index and let none be made, until an operator rebuilds them, as docs/recovery.md says."""
    wait_for_pods(load, chance)
    with ground.no_more_shards():
        ground.delete_indices()
        wait_for_pods(load, chance)
        ground.wait_until_index_waits("shards open")
        ground.wait_until_loss_is_noticed()
    ground.processes.stop("index")
    ground.read_topics_again()
    ground.start_index()
    ground.wait_until_index_reads()
    wait_for_pods(load, chance)
    ground.wait_visible(load.namespace, 1)
