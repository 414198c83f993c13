"""Secrets from files: for a secret ``NAME``, ``NAME_FILE`` names a file that holds it.

The process reads the file when it starts, without a line break at its end: editors and ``echo`` write one.
"""

from pathlib import Path

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from runtime.errors import SettingError

SUFFIX = "_FILE"


def is_secret(field: FieldInfo) -> bool:
    """Tell whether the value is never shown, and read from a file as well."""
    return SecretStr in (field.annotation, *getattr(field.annotation, "__args__", ()))


def read_secret(path: Path, name: str) -> SecretStr:
    """Read the secret from its file. Raises ``SettingError``, which begins with ``name``, the flag or the variable."""
    try:
        text = path.read_text(encoding="utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise SettingError(f"{name}: {path} is not text in UTF-8") from None
    except OSError as error:
        raise SettingError(f"{name}: {path}: {error.strerror}") from None
    if not text:
        raise SettingError(f"{name}: {path} is empty")
    return SecretStr(text)


def reveal_secret(secret: SecretStr | None) -> str:
    """Reveal the text of a secret; empty without one."""
    return secret.get_secret_value() if secret else ""
