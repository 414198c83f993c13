"""What a scheduler decides about one pod, as a library: the scheduler decides with it, the API asks it "what if".

devices              what nodes register and pods hold of it, as numpy columns
judge                one pod against all offered nodes: fit, scores, choice
events               a decision as the events that are published about it
device_config        HAMi's device configuration; device_config_keys has its keys
device_config_keys
manifests            a file of Kubernetes objects, checked: the cluster, or one pod
simulate             one attempt on such a file: what the API would say about it

No client, no server, no clock: the caller gives the cluster, the pod and the time.
"""
