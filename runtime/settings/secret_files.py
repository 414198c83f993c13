"""Secrets from files: for a secret ``NAME``, ``NAME_FILE`` names a file that holds it.

A line break at its end is left out: editors and ``echo`` write one. The file is read again when it changes: a kubelet
writes it again when its Secret changes.
"""

from contextlib import suppress
from pathlib import Path

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from runtime.errors import SettingError

SUFFIX = "_FILE"

Version = tuple[int, int, int] | None
"""Time of change, inode and size of a file; None without one."""


class FileSecret(SecretStr):
    """A secret whose value is that of its file now. While the file can't be read, or is empty, it is the last one."""

    def __init__(self, path: Path) -> None:
        """Read the file. Raises ``OSError``, ``UnicodeDecodeError``, and ``ValueError`` for an empty one."""
        super().__init__(_read_text(path))
        self.path = path
        self._version = read_version(path)

    def get_secret_value(self) -> str:
        version = read_version(self.path)
        if version != self._version:
            # Somebody may be writing it: the next use reads it again.
            with suppress(OSError, ValueError):
                self._secret_value = _read_text(self.path)
                self._version = version
        return super().get_secret_value()


def _read_text(path: Path) -> str:
    text = path.read_text(encoding="utf-8").rstrip("\r\n")
    if not text:
        raise ValueError("is empty")
    return text


def read_version(path: Path) -> Version:
    """Read what changes with the content of a file: kubelets replace it, editors write into it."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size


def is_secret(field: FieldInfo) -> bool:
    """Tell whether the value is never shown, and read from a file as well."""
    return SecretStr in (field.annotation, *getattr(field.annotation, "__args__", ()))


def read_secret(path: Path, name: str) -> SecretStr:
    """Read the secret from its file. Raises ``SettingError``, which begins with ``name``, the flag or the variable."""
    try:
        return FileSecret(path)
    except UnicodeDecodeError:
        raise SettingError(f"{name}: {path} is not text in UTF-8") from None
    except ValueError as error:
        raise SettingError(f"{name}: {path} {error}") from None
    except OSError as error:
        raise SettingError(f"{name}: {path}: {error.strerror}") from None


def reveal_secret(secret: SecretStr | None) -> str:
    """Reveal the text of a secret; empty without one."""
    return secret.get_secret_value() if secret else ""


def is_fixed(secret: SecretStr | None) -> bool:
    """Tell whether the secret came from a variable, which a process reads only at its start."""
    return secret is not None and not isinstance(secret, FileSecret)
