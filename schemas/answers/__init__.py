"""The JSON that the API returns.

============  ===================================================================================
base          what every answer shares, and the events of a watch
attempts      attempts of pods: the proposal's answer, its devices, history, search
comparisons   why a node was chosen; nodes by identical refusal; two nodes or attempts side by side
diagnosis     why a pod waits
workloads     the pods of a workload by what keeps them
simulation    where a pod would go that does not exist yet
capacity      pods of one shape that start now, and the plan of a drain
replays       recorded pods and nodes of a range of time, and their replay under a change
suggestions   what would have to change for a pod to fit
waiting       pods that wait, and what a device refused
trends        counts over time
reports       the failures of a range of time
alerts        alerts that fire, or ended within a day
placements    pods on nodes, findings, and the state of one node
nodes         clusters, the nodes of one, its schedulers, and names that a search field completes
============  ===================================================================================
"""
