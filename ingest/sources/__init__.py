"""Sources of lines.

- ``pieces``: the pieces of one log; the first bytes of packed files
- ``follow``: files, also those that grow, rotate or are truncated; standard input
- ``packed``: unpacks packed files; imported only for them
- ``log_facts``: facts that the lines do not have: the time zone, the nodes
- ``pod_log``: a container's log through the API server
- ``pod_choice``: the log of a pod whose name is known only by its beginning
"""
