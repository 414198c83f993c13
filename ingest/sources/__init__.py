"""Where lines come from.

- ``blocks``: the bytes of files and archives, unpacked
- ``formats``: by which bytes a packed file is recognised
- ``packed``: unpacks it
- ``pieces``: a log, piece by piece
- ``follow``: files that grow, rotate or are truncated, and standard input
- ``log_facts``: facts that the lines do not have: the time zone, the nodes
- ``pod_log``: a container's log through the API server
- ``pod_choice``: the same for a pod of which only the beginning of the name is known
"""
