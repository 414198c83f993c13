"""Diagnosis: a decision tree from facts about a pod and its cluster to the one main obstacle for which it waits,
and the changes that would remove it. Pure.

    facts ──▶ *_steps (questions, in the order of the tree) ──▶ tree: the main obstacle, and the answer

evidence         sources of facts, and facts that are missing
facts            facts of one answer
objects          objects of the API server as facts
logged_facts     facts of a log's lines that are no verdicts
outcome          what a step returns: an answer with its evidence, and obstacles
tree             walks the tree, ranks the obstacles, and builds the answer
headline         first line: nearest node and cheapest proved change, or the next best node; and the second line
answer_parts     obstacles, devices of claims and steps as parts of the answer
timeline         moments of the pod's way through the layers
layer_waits      time that it spent in each layer
waiting          fields of an attempt in lists of waiting pods: its obstacle, and the nodes that lacked least

Questions

pod_steps        does it exist, does it wait, is it held back, can its node start it
scheduler_steps  is its scheduler the right one, does it run, does it look at the pod
cluster_steps    claims, quotas, open nodes, registered devices
judged_steps     would a node take it, by the cluster's objects
missing_resources
                 resources that the scheduler counted and no node offers
attempt_steps    did the filter run, did a node pass, and why did the others not
bind_steps       was the node locked, may the scheduler bind, is the pod bound
logged_steps     what the lines of a log around a verdict explain
reclaimed_places words about a place that a scheduler of queues took
log_ends         attempts that a log does not end, notes about its scheduler

Verdicts of kube-scheduler's filters (`engine.judging`)

judged_nodes     obstacles behind them, in the order of the filters
judged_labels, judged_resources, judged_neighbours, judged_volumes, judged_claims, judged_pod
                 what each filter compared: labels, resources, other pods, volumes, claims, the pod as such
judged_cluster   a judgement with its snapshot, and the obstacle of some nodes out of all
cel_errors       errors of selectors in Chinese
claim_devices    devices of a claim's requests over all nodes, by reason
claim_findings   the value of a device and what was asked, in both languages

Layers

layers           what holds a pod before and after its scheduler, from its Job to its kubelet

Below them

nearest_nodes    the nodes of an attempt that lacked least
refused_nodes    the nodes that an attempt refused, each under the reason that decides it
counted_reasons  the nodes that a text of a scheduler counts by reason
pod_clauses      clauses about the pod's own object, next to what its scheduler says
device_numbers   requested amounts of devices, and the most that was free
open_nodes       kube-scheduler's own checks that need only the pod and the node
vendor_words     texts about devices in the words of the pod's vendor
wording          durations, lists of names, attempts as evidence
texts            all texts in English and Chinese, from texts.toml
"""
