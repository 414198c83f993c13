"""Secrets of files that change while a process runs, as a kubelet changes them."""

from pathlib import Path

import pytest

from runtime.errors import SettingError
from runtime.settings.kafka_connection import KafkaConnection
from runtime.settings.secret_files import FileSecret, read_secret
from runtime.settings.settings import read


def replace(path: Path, text: str) -> None:
    """Replace the file as a whole, as a kubelet does."""
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").rename(path)


def test_a_secret_is_that_of_its_file_now(tmp_path: Path) -> None:
    path = tmp_path / "password"
    path.write_text("first\n")
    secret = read_secret(path, "X")
    assert secret.get_secret_value() == "first"
    replace(path, "second, longer\r\n")
    assert secret.get_secret_value() == "second, longer"
    assert "second" not in f"{secret!r} {secret}"


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\xfe", None])
def test_while_its_file_says_nothing_it_is_the_last_one(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "password"
    path.write_text("first")
    secret = FileSecret(path)
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    assert secret.get_secret_value() == "first"
    replace(path, "third")
    assert secret.get_secret_value() == "third"


@pytest.mark.parametrize(("content", "cause"), [(b"", "is empty"), (b"\xff", "is not text in UTF-8")])
def test_a_file_without_a_secret_is_refused_at_the_start(tmp_path: Path, content: bytes, cause: str) -> None:
    (tmp_path / "password").write_bytes(content)
    with pytest.raises(SettingError, match=rf"^SECRET: .*password {cause}$"):
        read_secret(tmp_path / "password", "SECRET")


def test_settings_keep_the_file_of_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "password"
    path.write_text("first")
    for name, value in {
        "BOOTSTRAP_SERVERS": "127.0.0.1:1", "SECURITY_PROTOCOL": "sasl_plaintext", "SASL_MECHANISM": "PLAIN",
        "USERNAME": "worker", "PASSWORD_FILE": str(path),
    }.items():  # fmt: skip
        monkeypatch.setenv(f"SCHEDULERLOG_KAFKA_{name}", value)
    connection = read(KafkaConnection)
    replace(path, "second one")
    assert connection.kafka_password
    assert connection.kafka_password.get_secret_value() == "second one"
