"""Sources of lines.

- ``blocks``: the bytes of files and archives, unpacked
- ``formats``: the first bytes of packed files
- ``packed``: unpacks it
- ``pieces``: a log, piece by piece
- ``follow``: files that grow, rotate or are truncated, and standard input
- ``log_facts``: facts that the lines do not have: the time zone, the nodes
- ``pod_log``: a container's log through the API server
- ``pod_choice``: the log of a pod whose name is known only by its beginning
"""
