"""Decision of a scheduler about one pod, as a library: the scheduler decides with it, the API asks it "what if".

    devices             nodes' devices and pods' use of them, as numpy columns
    judge               one pod against all offered nodes: `judge.decide.decide`
    events              a decision as the events that are published about it
    device_config       HAMi's device configuration
    device_config_keys  sections and keys of the device configuration
    manifests           a file of Kubernetes objects, checked: the cluster, or one pod
    simulate            one attempt on such a file: what the API would say about it

No client, no server, no clock: the caller gives the cluster, the pod and the time.
"""
