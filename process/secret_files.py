"""Secrets from files: where ``NAME`` is a secret, ``NAME_FILE`` names a file that holds it.

The file is read when the process starts. A line break at its end does not count: editors and ``echo`` write one.
"""

import os
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from process.errors import SettingError

SUFFIX = "_FILE"


def is_secret(field: FieldInfo) -> bool:
    """Is the value never shown, and read from a file as well?"""
    return SecretStr in (field.annotation, *getattr(field.annotation, "__args__", ()))


def read_secret(path: Path, name: str) -> SecretStr:
    """What the file holds. Raises ``SettingError``, which begins with ``name``, the flag or the variable."""
    try:
        text = path.read_text(encoding="utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise SettingError(f"{name}: {path} is not text in UTF-8") from None
    except OSError as error:
        raise SettingError(f"{name}: {path}: {error.strerror}") from None
    if not text:
        raise SettingError(f"{name}: {path} is empty")
    return SecretStr(text)


class SecretFiles(PydanticBaseSettingsSource):
    """The values that ``NAME_FILE`` variables give."""

    def __init__(self, settings_cls: type[BaseSettings], prefix: str) -> None:
        super().__init__(settings_cls)
        self._prefix = prefix

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """The secret, or None. Raises ``SettingError``, also where the variable of the value is set too."""
        name = f"{self._prefix}{field_name.upper()}"
        path = os.environ.get(name + SUFFIX)
        if not path or not is_secret(field):
            return None, field_name, False
        if os.environ.get(name):
            raise SettingError(f"{name + SUFFIX}: {name} is set too, leave one of them out")
        return read_secret(Path(path), name + SUFFIX), field_name, False

    def __call__(self) -> dict[str, Any]:
        fields = self.settings_cls.model_fields.items()
        found = {name: self.get_field_value(field, name)[0] for name, field in fields}
        return {name: value for name, value in found.items() if value is not None}
