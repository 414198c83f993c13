"""Simulation: what a cluster would do with a pod that does not exist yet. Pure.

    workload ──▶ defaults ──▶ admission ──▶ filters ──▶ devices ──▶ answer

workloads       pods of a file: templates of Jobs, Deployments and others
completion      objects that were written by hand or cut short, completed where a judge needs it
claim_templates claims that a controller makes from templates of the pod
admission       HAMi's webhook on the pod, and what it changed in words
cluster         the cluster's objects as a snapshot, as devices and as a device table
creation        what the API server writes into a new pod, and why it refuses it
own_schedulers  our schedulers among the pods of the cluster, each with the schedulers that share its nodes
limit_ranges    LimitRanges: amounts for containers that name none, and bounds
quotas, quota_usage
                Kubernetes' quotas on a new pod and its claims, and what these count in them
object_quotas   quotas that count the workload itself, or the claim that a bind makes
requests        amounts that HAMi does not count as they are written
ignored_words   annotations, models, resources and quotas that no scheduler reads, and resources that the cluster offers
                under other names
verdict         one pod judged: filters first, then the fit on the nodes that pass
counted         a pod judged by the filters alone, for counting its copies
equal_nodes     nodes that are equal to every filter
kai_shares      parts of devices that KAI gives, next to what other pods have of them
device_parts    parts of devices that Koordinator or Volcano gives
picked_devices  devices of the chosen node with their state before and the verdict on each
several         several pods, placed one after the other
proved_changes  the smallest changes of the pod's requests and of the cluster after which the pod fits, each proved
node_changes, cluster_changes, claim_changes, holder_changes, request_changes
                the parts of them that change nodes, other objects, claims for devices, holders, and amounts
change_trial    one set of changes, and its proof
held_claims     claims of a placed pod with their devices, which no later pod gets
pod_placer      pods placed one after the other, each on what the ones before leave
gangs           pods that start only together: how many of them fit
setting         time, policy and names of a simulation, notes for the reader of its answer
simulate        the whole simulation, from workloads to the answer
answer          the answer of the API and of the terminal
"""
