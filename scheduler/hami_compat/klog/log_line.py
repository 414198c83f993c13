"""Lines of HAMi's log, and the spelling of values in them. Pure."""

from typing import NamedTuple

import numpy as np
import orjson


class LogLine(NamedTuple):
    """A line without klog's header. source: file and line of HAMi's source. severity: I, W or E."""

    source: str
    text: str
    severity: str = "I"


def quote(text: str) -> str:
    """Quote a text, with everything escaped that could end it or the line."""
    # orjson escapes what JSON demands, and DEL is not among it.
    written: bytes = orjson.dumps(text)
    return written.decode().replace("\x7f", "\\u007f")


def format_float(number: float) -> str:
    """Format a float32 as Go prints it: the shortest text that reads back as the same number."""
    value = np.float32(number)
    if not np.isfinite(value):
        return "NaN" if np.isnan(value) else f"{'+' if value > 0 else '-'}Inf"
    # Go's %v changes to exponents below 1e-4, numpy does not by itself.
    if value and abs(value) < 1e-4:
        return np.format_float_scientific(value, trim="-", exp_digits=2)
    return np.format_float_positional(value, trim="-")
