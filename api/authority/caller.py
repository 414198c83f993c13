"""Who asks."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Caller:
    """A user as Kubernetes knows them: by name, and with what else decides about their rights."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()
