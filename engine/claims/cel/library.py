"""Google's CEL library, which is an extra of the installation."""

from functools import cache
from typing import Any


class UnjudgedError(ValueError):
    """An expression that Kubernetes may take and that is not judged here; the text is the reason."""


@cache
def load_library() -> Any:
    """Import the library; raise UnjudgedError where it is not installed."""
    try:
        from cel_expr_python import cel
    except ImportError:
        raise UnjudgedError(
            "the CEL library is not installed; install schedulerlog[claims] to have device selectors judged"
        ) from None
    return cel
