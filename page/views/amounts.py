"""How amounts are written for people: one rule for each, on page, in a terminal and to an assistant. Pure."""


def number(value: int) -> str:
    """With commas between thousands."""
    return f"{value:,}"


def memory(mib: int) -> str:
    """In MiB, whatever the amount: as pods ask for it (``nvidia.com/gpumem``), and as nvidia-smi shows it."""
    return f"{number(mib)} MiB"


def gpu_hours(hours: float) -> str:
    """To a hundredth below one, else to a tenth."""
    return f"{hours:,.2f}" if hours < 1 else f"{hours:,.1f}"
