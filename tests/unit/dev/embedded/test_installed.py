import hashlib
import zipfile
from pathlib import Path

import pytest

from dev.embedded import installed
from dev.embedded.jvm import JvmSettings
from dev.embedded.lock import Jar, Lock


def a_file(cache: Path, path: str, content: bytes = b"x") -> Jar:
    file = cache / path
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix == ".jar":
        file.write_bytes(content)
    else:
        with zipfile.ZipFile(file, "w") as archive:
            for name in ("own.jar", "shared-1.jar", "config/roles.yml", "../outside.jar"):
                archive.writestr(name, b"in the plugin")
    data = file.read_bytes()
    return Jar(path, len(data), hashlib.sha256(data).hexdigest())


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "schedulerlog" / "jars"


def test_the_jars_of_a_plugin_follow_those_of_its_server_which_come_first(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jars = (a_file(cache, "org/shared-1.jar"), a_file(cache, "org/plugin-1.zip"))
    lock: Lock = {"kafka": (), "opensearch": (), "secured-opensearch": jars}
    monkeypatch.setattr(installed, "read_lock", lambda: lock)
    for _ in range(2):
        jvm = installed.install_jvms(JvmSettings(), kinds=["secured-opensearch"])["secured-opensearch"]
        unpacked = cache.with_name("plugins") / "plugin-1"
        assert jvm.class_path == (cache / "org/shared-1.jar", unpacked / "own.jar")
        # What another folder would get is not unpacked, and nothing unfinished is left.
        assert sorted(path.name for path in unpacked.iterdir()) == ["own.jar", "shared-1.jar"]
        assert [path.name for path in cache.with_name("plugins").iterdir()] == ["plugin-1"]
        assert not (cache.with_name("plugins") / "outside.jar").exists()
