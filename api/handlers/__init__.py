"""Handlers of requests: each checks its right, looks its subject up, lets pure code build the answer, and adds headers.

==============  ================================================================================
schedulerlog    latest attempt of a pod, its history, and search over all attempts
placements      findings, pod placements, observations, and nodes at a time
pending         pods that wait now: by workload, by obstacle or one by one
pending_rows    rows of pending pods without nesting
waiting_page    pages of waiting pods, with the shortfall of the nearest nodes
waiting         pods by state, and refusals by a device
watching        changes of a pod, of attempts or of pending pods as they happen
alerts          alerts that fire, or ended within a day
trends          counts over time, and the report of failures
clusters        clusters, their nodes, and their schedulers
comparisons     scores, nodes by refusal, and two nodes or two attempts side by side
diagnosis       diagnosis of a waiting pod by the decision tree
workloads       diagnosis of a workload: its pods by what keeps them
suggestions     changes after which a pod fits
admission       changes that would admit most of the waiting pods
simulation      placement of a pod that does not exist yet
capacity        pods of a shape that start now
plans           drain of a node, moves after which a pod starts, nodes to add
cluster_file    recorded cluster as a file of Kubernetes objects
recordings      recorded range of time, to be replayed
health          liveness, readiness and metrics
attempt_rights  attempts for callers who may read their pods
fact_redaction  facts of a diagnosis without pods that the caller may not read
redaction       answers without pods that the caller may not read
listing         one page of a list
names           names for a search field, and for a name that does not exist
not_found       404 answers, with hints what to check
==============  ================================================================================
"""
