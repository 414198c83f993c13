"""Resource claims on a snapshot, as DynamicResources of kube-scheduler 1.36 decides about them (DRA).

inventory        slices, classes and claims of a snapshot, read once for all pods
pod_claims       the claims of a pod, and the refusals before the nodes
judge            node after node: the verdict, and the devices that the claims would get
explanation      one node: its pools, and for every request and device why the device is not picked
equal_nodes      explanations of many nodes, of equal ones once
filter_plugin    the judge among the filters of `engine.filters`

Objects
    slices, slice_index, device_values, device_details, requests, claims, allocated, extended; quantity and version
    are values in them; gates are the feature gates of the cluster
The search
    pools, request_plans, search, reservations; what decides on a device: matching, capacity, counters, constraints;
    device_keys and node_keys tell which devices and nodes are equal
The explanation
    device_facts (taints too), findings, judgement (reasons too)
CEL
    cel
"""
