"""Semantic versions as Kubernetes parses and orders them."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_DIGITS: Final = re.compile(r"[0-9]+")
_WORD: Final = re.compile(r"[0-9A-Za-z-]+")
_UINT64_MAX: Final = 2**64 - 1
_MAX_LENGTH: Final = 10_240


class VersionError(ValueError):
    """A text that is not a semantic version; the message is Kubernetes' own."""


@dataclass(frozen=True, slots=True)
class Version:
    """A semantic version. prerelease: its parts, numeric ones as numbers."""

    major: int
    minor: int
    patch: int
    prerelease: tuple[int | str, ...] = ()
    build: tuple[str, ...] = ()

    def compare(self, other: "Version") -> int:
        """Compare two versions: -1, 0 or 1. Build metadata does not count."""
        mine, theirs = self._rank(), other._rank()
        return (mine > theirs) - (mine < theirs)

    def _rank(self) -> tuple[int, int, int, bool, list[tuple[bool, int, str]]]:
        parts = [(False, part, "") if isinstance(part, int) else (True, 0, part) for part in self.prerelease]
        return self.major, self.minor, self.patch, not parts, parts

    def __str__(self) -> str:
        """Print the version."""
        text = f"{self.major}.{self.minor}.{self.patch}"
        if self.prerelease:
            text += "-" + ".".join(map(str, self.prerelease))
        return text + ("+" + ".".join(self.build) if self.build else "")


@lru_cache(maxsize=1024)
def parse_version(text: str) -> Version:
    """Parse a semantic version; raise VersionError with Kubernetes' own text."""
    if not text:
        raise VersionError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3 or len(text) > _MAX_LENGTH:
        raise VersionError("No Major.Minor.Patch elements found")
    major, minor = _read_number(parts[0], "major", "Major"), _read_number(parts[1], "minor", "Minor")
    tail, plus, build = parts[2].partition("+")
    patch, dash, prerelease = tail.partition("-")
    return Version(
        major,
        minor,
        _read_number(patch, "patch", "Patch"),
        tuple(_read_prerelease(part) for part in prerelease.split(".")) if dash else (),
        tuple(_read_build(part) for part in build.split(".")) if plus else (),
    )


def normalize_version(text: str) -> str:
    """Fill a short version up to three parts, and drop a leading ``v`` and leading zeros, as Kubernetes does."""
    parts = text.removeprefix("v").split(".", 2)
    parts = [_strip_zeros(part) for part in parts]
    if len(parts) < 3 and ("+" in parts[-1] or "-" in parts[-1]):
        raise VersionError("short version cannot contain PreRelease/Build meta data")
    return ".".join(parts + ["0"] * (3 - len(parts)))


def _strip_zeros(part: str) -> str:
    if len(part) <= 1:
        return part
    stripped = part.lstrip("0")
    return stripped if stripped[:1].isascii() and stripped[:1].isdigit() else "0" + stripped


def _read_number(text: str, name: str, title: str) -> int:
    if not _DIGITS.fullmatch(text):
        # An empty text passes this check of Kubernetes and fails as a number.
        if not text:
            raise VersionError('strconv.ParseUint: parsing "": invalid syntax')
        raise VersionError(f'Invalid character(s) found in {name} number "{text}"')
    if len(text) > 1 and text.startswith("0"):
        raise VersionError(f'{title} number must not contain leading zeroes "{text}"')
    return _check_size(text)


def _check_size(text: str) -> int:
    if len(text) > 20 or int(text) > _UINT64_MAX:
        raise VersionError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return int(text)


def _read_prerelease(text: str) -> int | str:
    if not text:
        raise VersionError("Prerelease is empty")
    if _DIGITS.fullmatch(text):
        if len(text) > 1 and text.startswith("0"):
            raise VersionError(f'Numeric PreRelease version must not contain leading zeroes "{text}"')
        return _check_size(text)
    if not _WORD.fullmatch(text):
        raise VersionError(f'Invalid character(s) found in prerelease "{text}"')
    return text


def _read_build(text: str) -> str:
    if not text:
        raise VersionError("Build meta data is empty")
    if not _WORD.fullmatch(text):
        raise VersionError(f'Invalid character(s) found in build meta data "{text}"')
    return text
