"""Answers requests: each handler asks for its right, looks its subject up, lets pure code build the answer, and adds
headers.

==============  ================================================================================
schedulerlog    the latest attempt of a pod, its history, and search over all attempts
placements      findings, pod placements, observations, and nodes at a time
pending         the pods that wait now: by workload, by obstacle or one by one
pending_rows    their rows without nesting
waiting_page    pages of waiting pods, with what the nearest nodes lack
waiting         pods by state, and what a device refused
watching        the changes of a pod, of attempts or of pending pods as they happen
trends          counts over time
reports         the failures of a range of time
clusters        which clusters there are, their nodes, and their schedulers
comparisons     why a node was chosen, nodes by refusal; two nodes or two attempts side by side
diagnosis       why a pod waits: the decision tree
suggestions     what would have to change for a pod to fit
admission       which one change would let most of the waiting pods in
simulation      where a pod would go that does not exist yet
cluster_file    a recorded cluster as a file of Kubernetes objects
health          liveness, readiness and metrics
attempt_rights  an attempt by its id, for callers who may read its pod
redaction       what an answer about a node shows of pods that the caller may not read
listing         answers one page of a list
not_found       the 404 answers: what to check where nothing is recorded
==============  ================================================================================
"""
