"""Health and metrics of the parts of one process: each part shows its own, one server answers for all of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from runtime.settings.addresses import HostPort
from runtime.telemetry.health import Check, ServeHealth, serving


@dataclass(slots=True)
class _PartHealth:
    registry: CollectorRegistry | None = None
    alive: Check | None = None
    ready: Check | None = None
    trouble: str = "is starting"
    """State of a part that shows no health of its own, because it does not run."""

    def check_ready(self) -> str:
        return self.ready() if self.ready else self.trouble


class PartsHealth(Collector):
    """Health and metrics of all parts, by name."""

    def __init__(self, names: Sequence[str]) -> None:
        self._parts = {name: _PartHealth() for name in names}

    def serve_part(self, name: str) -> ServeHealth:
        """Return the function by which the part shows its health here, instead of at an address of its own."""

        def serve(
            _address: HostPort | None, registry: CollectorRegistry, alive: Check, ready: Check
        ) -> AbstractContextManager[None]:
            return self._show(self._parts[name], registry, alive, ready)

        return serve

    @contextmanager
    def _show(self, part: _PartHealth, registry: CollectorRegistry, alive: Check, ready: Check) -> Iterator[None]:
        part.registry, part.alive, part.ready = registry, alive, ready
        try:
            yield
        finally:
            # The metrics stay until the part shows new ones: a counter that vanishes looks like a dead target.
            part.alive = part.ready = None
            part.trouble = "has ended"

    def note_trouble(self, name: str, trouble: str) -> None:
        """Note why the part does not run; ``/readyz`` shows it until the part shows health of its own."""
        self._parts[name].trouble = trouble

    def check_alive(self) -> str:
        """Describe the first part that hangs; empty when none does."""
        return self._describe_first(lambda part: part.alive() if part.alive else "")

    def check_ready(self) -> str:
        """Describe the state of all parts, if one of them is not ready; otherwise empty."""
        return self.describe_parts() if self._describe_first(_PartHealth.check_ready) else ""

    def describe_parts(self) -> str:
        """Describe the state of all parts, one on each line."""
        return "\n".join(f"{name}: {part.check_ready() or 'ok'}" for name, part in self._parts.items())

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics of all parts."""
        for part in self._parts.values():
            if part.registry:
                yield from part.registry.collect()

    def open_server(self, address: HostPort | None) -> AbstractContextManager[HostPort | None]:
        """Open a context in which ``address`` answers for all parts. Raises ``SettingError`` if it is in use."""
        registry = CollectorRegistry()
        registry.register(self)
        return serving(
            address,
            registry,
            self.check_alive,
            self.check_ready,
            describe_ready=self.describe_parts,
            parts={name: part.check_ready for name, part in self._parts.items()},
        )

    def _describe_first(self, check: Callable[[_PartHealth], str]) -> str:
        problems = ((name, check(part)) for name, part in self._parts.items())
        return next((f"{name}: {problem}" for name, problem in problems if problem), "")
