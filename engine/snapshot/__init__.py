"""A cluster at one moment, read from plain Kubernetes objects and indexed for judging pods on it.

reading            ``read_snapshot``: objects of any origin as a `Snapshot`, with a sentence for each unusable one
snapshot           ``Snapshot``: nodes with the pods on them, volumes, namespaces, and every other kind as it was read
node_info         a node together with its pods and the sums of their requests
nodes              one Node object
pods               one Pod object
pod_defaults       values that the API server writes into a new pod
requests           the amounts that a pod requests, as kube-scheduler adds them up
volumes            volumes of pods and the objects behind them: claims, volumes, classes, CSI objects
selectors          label and node selectors
affinity_terms     the terms of inter-pod affinity
case_objects       plain objects by kind and name, and the Kubernetes events about each
needed_kinds       collections of the API server that a diagnosis of a pod needs
trimming           objects without what no answer reads
kinds              names of kinds, and lists of objects flattened
fields             typed reading of fields, with the path in every error
quantity           Kubernetes quantities, rounded as kube-scheduler rounds them, and written as people write them
"""
