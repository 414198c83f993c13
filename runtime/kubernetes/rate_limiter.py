"""Token bucket that limits requests per second (`qps` and `burst` of Kubernetes clients). Time is an argument."""


class RateLimiter:
    """Limiter of `qps` requests a second, and up to `burst` at once after a pause. `qps` 0 means no limit."""

    def __init__(self, qps: float, burst: int) -> None:
        self._qps, self._burst = qps, max(burst, 1)
        self._free, self._refilled_at = float(self._burst), 0.0

    def delay_seconds(self, now: float) -> float:
        """Take one token and return how many seconds to wait before using it; `now` must not go back."""
        if not self._qps:
            return 0.0
        self._free = min(self._free + (now - self._refilled_at) * self._qps, self._burst)
        self._refilled_at = now
        # The bucket may go below zero, so that each caller in the queue gets a later moment.
        self._free -= 1
        return max(-self._free / self._qps, 0.0)
