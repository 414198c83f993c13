"""Requests per second, as a token bucket (the `qps` and `burst` of Kubernetes clients). Pure: time is an argument."""


class Rate:
    """`qps` 0: no limit. Up to `burst` requests at once after a pause."""

    def __init__(self, qps: float, burst: int) -> None:
        self._qps, self._burst = qps, max(burst, 1)
        self._free, self._at = float(self._burst), 0.0

    def wait(self, now: float) -> float:
        """Take one token; how many seconds to wait before using it. `now` never goes back."""
        if not self._qps:
            return 0.0
        self._free = min(self._free + (now - self._at) * self._qps, self._burst)
        self._at = now
        self._free -= 1
        return max(-self._free / self._qps, 0.0)
