"""Limit of the files and connections that this process may have open."""

import resource


def allow_all_descriptors() -> int:
    """Raise the limit to the system's maximum and return it: a process without free descriptors answers no caller."""
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    return limit
