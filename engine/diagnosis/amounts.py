"""Amounts of resources as people write them: ``500m`` CPU, ``12.5Gi`` of memory, ``8`` devices."""

from typing import Final

from engine.snapshot.quantity import CPU

_BYTES: Final = ("memory", "ephemeral-storage")
_UNITS: Final = (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))


def format_amount(resource: str, amount: int) -> str:
    """Format an amount in the units of `engine.snapshot.requests.Amounts`."""
    if resource == CPU:
        return f"{amount}m" if amount % 100 else f"{amount / 1000:g}"
    if resource in _BYTES or resource.startswith("hugepages-"):
        return _format_bytes(amount)
    return f"{amount:,}"


def _format_bytes(amount: int) -> str:
    """Format bytes in the largest unit of which there is one; exactly, or with one decimal place."""
    for unit, size in _UNITS:
        if abs(amount) >= size:
            return f"{amount // size}{unit}" if amount % size == 0 else f"{amount / size:.1f}{unit}"
    return str(amount)
