"""Of how many of the pods that were placed in a report's time their wait is known. Pure."""


def is_wait_known(placed: int, measured: int) -> bool:
    """Whether the GPU-hours of ``placed`` pods are those of all of them.

    No wait is known of a pod that had its node before anybody judged it; ``measured``: how many pods have a time to
    placement.
    """
    return measured >= placed
