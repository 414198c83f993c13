"""One pod against all devices: fit, order, score and choice as HAMi does it. Pure: values in, values out.

request            what each container requests of each vendor
vendor_requests    the same of vendors other than NVIDIA
pod_annotations    what the pod's annotations require of devices and nodes
pod_constraints    both for one vendor, with the cluster's side: the same for all nodes of an attempt
device_request     one container's request in the form that the checks use
device_matrix      the devices of many nodes as matrices (slots, nodes)
batch_evaluation   one pod against one batch of nodes, container after container
fit                the checks for all nodes at once
fitting_nodes      whether the pod fits on any of many nodes, and nothing else
sequential_fit     the same where a verdict depends on devices taken before (NUMA binding, quotas)
topology           which devices a topology-aware pod gets
reference_fit      the rules in their plain form, one device after the other; MIG needs it, tests compare with it
vendors            the rules of single vendors
vendor_scores      what vendors add to the scores of nodes
vendor_state       what containers got so far, for the rules of single vendors
init_peaks         what init containers count against a quota
per_node           the reference fit for the nodes that need it
scoring            the order of trying and the scores of nodes
verdict_codes      the numbers of verdicts
results            matrices of verdicts as flat rows and typed refusals
reservation        what an allocation writes into the pod and holds in the cluster state
decide             the way in: one pod against all offered nodes
decision           what ``decide`` returns
"""
