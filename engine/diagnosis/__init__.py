"""Why a pod waits: a decision tree from what is known of the pod and its cluster to one main obstacle;
and what would have to change. Pure.

    facts ──▶ *_steps (questions, in the order of the tree) ──▶ obstacle (the main one) ──▶ tree: the answer

facts            what is known, where it comes from, and what could not be known
objects          objects of the API server as facts
outcome          what a step returns: an answer with its evidence, and obstacles
tree             walks the tree and puts the answer together
waiting          what an attempt says to lists of waiting pods: its obstacle, and the nodes that lacked least

Questions

pod_steps        is it there, does it wait, is it held back, can its node start it
scheduler_steps  is it of the right scheduler, does that run, does it look at the pod
cluster_steps    claims, quotas, open nodes, registered devices
attempt_steps    did the filter run, did a node pass, and why the others did not
bind_steps       was the node locked, may the scheduler bind, is the pod bound

Below them

refused_nodes    the nodes that an attempt refused, each under the reason that decides it
device_numbers   how much was asked of the devices, and the most that was free
open_nodes       kube-scheduler's own checks that need the pod and the node alone
obstacle         which of several obstacles is stated first
wording          durations, lists of names, attempts as evidence
texts            all texts in English and Chinese, from texts.toml
"""
