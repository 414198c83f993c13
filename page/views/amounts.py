"""Amounts as people read them: one format for each, on page, in a terminal and to an assistant; and their completeness.
Pure."""


def format_number(value: int) -> str:
    """Format with commas between thousands."""
    return f"{value:,}"


def format_memory(mib: int) -> str:
    """Format in MiB, whatever the amount: as pods request it (``nvidia.com/gpumem``), and as nvidia-smi shows it."""
    return f"{format_number(mib)} MiB"


def format_gpu_hours(hours: float) -> str:
    """Format with two decimals below one, else with one."""
    return f"{hours:,.2f}" if hours < 1 else f"{hours:,.1f}"


def is_wait_complete(placed: int, measured: int) -> bool:
    """Tell whether the GPU-hours of ``placed`` pods are those of all of them.

    A pod that had its node before anybody judged it has no wait; ``measured``: number of pods with a time to placement.
    """
    return measured >= placed
