"""Capacity: what a cluster takes now, and what it would take after a change. Pure; nothing is written.

    shape or file ──▶ per_node ──▶ starts          node ──▶ drain

shapes       a pod from amounts
per_node     number of copies of a pod that each node takes
added_nodes  empty copies of nodes, for a question
releases     pods whose end makes room
starts       wanted pods: how many start, what the others wait for, nodes that would take them
budgets      disruption budgets on the evictions of a plan
moves        pods that leave their node, each placed again
drain        pods of a node placed elsewhere
defragment   fewest moves after which waiting pods start
purchase     nodes to add, by kind, for the pods that wait
replay       a recorded range of time decided again, under a change
replayed_waits  waits of the record beside those of its replays
fleet        devices of a node in sums that add up over all nodes

Everything is judged by `engine.simulation`, as the whole cluster would.
"""
