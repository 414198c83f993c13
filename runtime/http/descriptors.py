"""Limit of the files and connections that this process may have open."""

import resource


def allow_all_descriptors() -> int:
    """Take as many as the system lets this process have, and say how many: without any, no caller is answered."""
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    return limit
