import bz2
import gzip
import io
import lzma
import os
import tarfile
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
import zstandard

from ingest.sources.follow import Reached, read_blocks, read_file
from ingest.sources.pieces import UnreadableFileError

TEXT = b"".join(b"line %d\n" % number for number in range(50_000))


def make_tar(text: bytes, dated: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name in ("0.log", "1.log"):
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(text), int(dated.timestamp())
            archive.addfile(member, io.BytesIO(text))
    return packed.getvalue()


def unpack(path: Path) -> dict[str, bytes]:
    logs: dict[str, bytes] = {}
    for block in read_blocks(path):
        name = block.origin.name.removeprefix(str(path))
        logs[name] = logs.get(name, b"") + block.data
    return logs


PACKERS = (bytes, gzip.compress, zstandard.compress, lzma.compress, bz2.compress, lambda text: gzip.compress(text) * 2)


@pytest.mark.parametrize("pack", PACKERS)
def test_a_log_is_read_however_it_is_packed(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "any-name"
    path.write_bytes(pack(TEXT))
    [text] = unpack(path).values()
    assert text in (TEXT, TEXT * 2)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress])
def test_the_members_of_an_archive_are_logs_of_their_own(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "logs"
    path.write_bytes(pack(make_tar(TEXT)))
    assert unpack(path) == {":0.log": TEXT, ":1.log": TEXT}


@pytest.mark.parametrize(
    ("dated", "read_as"),
    [
        # Archives that are made the same each time date members so; nothing of Kubernetes is older than 2014.
        (datetime(1970, 1, 1, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC)),
        (datetime(1980, 1, 1, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC)),
        (datetime(2019, 5, 6, tzinfo=UTC), datetime(2019, 5, 6, tzinfo=UTC)),
    ],
)
def test_a_member_of_no_time_was_changed_when_its_archive_was(
    dated: datetime, read_as: datetime, tmp_path: Path
) -> None:
    path = tmp_path / "logs.tar"
    path.write_bytes(make_tar(TEXT, dated))
    os.utime(path, (0, datetime(2026, 3, 1, tzinfo=UTC).timestamp()))
    assert {block.origin.reference for block in read_blocks(path)} == {read_as}


def test_a_file_of_no_time_was_changed_now(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(TEXT)
    os.utime(path, (0, 0))
    before = datetime.now(UTC)
    assert all(before <= block.origin.reference <= datetime.now(UTC) for block in read_blocks(path))


@pytest.mark.parametrize("broken", [gzip.compress(TEXT)[:-20], zstandard.compress(TEXT)[:-20] + b"x" * 20])
def test_the_error_about_a_broken_archive_names_the_file_and_the_cause(broken: bytes, tmp_path: Path) -> None:
    path = tmp_path / "broken.gz"
    path.write_bytes(broken)
    with pytest.raises(UnreadableFileError, match=r"broken\.gz"):
        unpack(path)


def test_the_error_about_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match="No such file"):
        list(read_blocks(tmp_path / "nothing"))


def test_a_file_is_read_from_where_it_was_left(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(TEXT)
    lines, reached, _ = next(iter(read_file(path, Reached())))
    path.write_bytes(TEXT + b"more\n")
    remainder = [text for again, _, _ in read_file(path, reached) for text in again.texts]
    assert [*lines.texts, *remainder] == (TEXT + b"more").split(b"\n")


def test_a_file_that_begins_differently_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(TEXT)
    *_, (_, reached, _) = read_file(path, Reached())
    path.write_bytes(b"another\n" + TEXT)
    assert next(text for lines, _, _ in read_file(path, reached) for text in lines.texts) == b"another"


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_a_truncated_packed_log_is_read_as_far_as_it_goes(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path, texts = tmp_path / "cut", list[bytes]()
    path.write_bytes(pack(TEXT)[:-2000])
    with pytest.raises(UnreadableFileError, match="cut: "):
        texts.extend(block.data for block in read_blocks(path))
    text = b"".join(texts)
    assert TEXT.startswith(text)
    assert len(text) > len(TEXT) // 10


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE])
def test_m10_an_archive_whose_header_unpacks_to_much_is_refused_in_little_memory(kind: bytes, tmp_path: Path) -> None:
    path, header = tmp_path / "bomb.tar.gz", tarfile.TarInfo("long")
    header.type, header.size = kind, 100_000_000
    path.write_bytes(gzip.compress(header.tobuf(tarfile.GNU_FORMAT) + bytes(header.size), 1))
    tracemalloc.start()
    with pytest.raises(UnreadableFileError, match=r"bomb\.tar\.gz: a header of 100000000 bytes"):
        list(read_blocks(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000
