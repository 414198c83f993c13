"""Every reason code with its meaning, likely cause and remedy, in English and Chinese.

The texts are in ``reasons.toml`` beside this module; ``docs/reasons.md`` shows them. The list is open: other schedulers
and later versions use codes that are not in it; those get a neutral entry that claims nothing.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

Language = Literal["en", "zh"]
Scope = Literal["device", "claim", "node", "pod"]
NonEmpty = Annotated[str, Field(min_length=1)]

_SOURCE: Final = Path(__file__).with_name("reasons.toml")


class _Entry(BaseModel):
    # A misspelled key in reasons.toml must fail the check rather than leave a text out.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Texts(_Entry):
    """The texts about one code, in one language."""

    meaning: NonEmpty
    """Meaning of the code: the scheduler's observation."""
    likely_cause: NonEmpty
    """Usual cause."""
    remedy: NonEmpty
    """Remedy: a check, and a change."""


class Reason(_Entry):
    """A code of the catalogue."""

    scope: Scope
    """Subject of the code. ``device``: counted device by device as ``X/Y Code``; ``claim``: so counted for the devices
    of a resource claim; ``node``; ``pod``."""
    en: Texts
    zh: Texts


class Explanation(Texts):
    """Answer of ``explain``."""

    code: str
    scope: Scope | None
    """Subject of the code; None for a code that the catalogue does not have."""
    language: Language

    @property
    def is_known(self) -> bool:
        return self.scope is not None


# It claims nothing about the cause: a guess about an unknown code would send the reader the wrong way.
_UNKNOWN: Final[Mapping[Language, Mapping[str, str]]] = {
    "en": {
        "meaning": "The scheduler's own words; the catalogue has no entry for them.",
        "likely_cause": "Another scheduler, another vendor's device, or a version of HAMi newer than the catalogue.",
        "remedy": "Look the words up in the documentation or the log of the scheduler that wrote them.",
    },
    "zh": {
        "meaning": "这是调度器的原话，原因目录中没有对应条目。",
        "likely_cause": "可能来自其他调度器、其他厂商的设备，或目录尚未收录的 HAMi 版本。",
        "remedy": "请在给出该原因的调度器的文档或日志中查找这段文字。",
    },
}


@cache
def read_catalogue() -> MappingProxyType[str, Reason]:
    """Code, spelled as the scheduler spells it, to its entry; in the order of the source."""
    table = tomllib.loads(_SOURCE.read_text(encoding="utf-8"))
    return MappingProxyType(TypeAdapter(dict[str, Reason]).validate_python(table))


def explain(code: str, language: str = "en") -> Explanation:
    """Explain ``code``: meaning, likely cause and remedy; of an unknown code, a neutral entry.

    ``language`` may be a tag as browsers send it (``zh-CN``); what is not Chinese is answered in English.
    """
    # Also zh-Hans, zh-TW and whatever else a browser's Accept-Language begins with.
    spoken: Language = "zh" if language.lower().startswith("zh") else "en"
    reason = read_catalogue().get(code)
    texts: Mapping[str, Any] = getattr(reason, spoken).__dict__ if reason else _UNKNOWN[spoken]
    scope = reason.scope if reason else None
    # Not validated: any text is a possible reason of some scheduler and gets an answer.
    return Explanation.model_construct(code=code, scope=scope, language=spoken, **texts)
