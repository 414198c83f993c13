"""kube-scheduler's own log at its default level (-v=2) and above, as events: counts of nodes by reason, binds.

- ``reader``: the entry
- ``grammar``: how each version spells each line
"""
