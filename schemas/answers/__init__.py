"""The JSON that the API returns.

============  =======================================================
base          what every answer shares
attempts      attempts of pods: the proposal's answer, history, search
devices       a device as an attempt judged it
comparisons   why a node was chosen; two nodes or two attempts side by side
node_groups   the nodes of an attempt by identical refusal
diagnosis     why a pod waits
simulation    where a pod would go that does not exist yet
suggestions   what would have to change for a pod to fit
waiting       pods that wait, and what a device refused
watching      the events of a watch
trends        counts over time
reports       the failures of a range of time
placements    pods on nodes, findings, and the state of one node
nodes         all nodes of a cluster, and its schedulers
clusters      which clusters there are
============  =======================================================
"""
