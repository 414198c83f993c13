"""From decisions to what people read: pure functions, without a broker, an index or a clock.

One attempt
    ``fold``              the records of an attempt as one summary
    ``device_counts``     device rows counted by verdict and model, and compared with the node records
    ``node_table``        node records as one table, checked against the device rows
    ``merge``             two summaries of one report as one
    ``reports``           reports of several sources as one summary, the best source first
    ``matching``          the reports of several sources that are about one try
    ``attempt_audit``     contradictions within one attempt
    ``text``              the only place that writes ``X/Y Reason``; texts cut to the limit of Kubernetes events
    ``messages``          the event lines of ``kubectl describe``
    ``answer``            the schedulerlog JSON
    ``named_pods``        texts without the pods of other namespaces
    ``foreign_namespaces``
                          complete answers without the pods of namespaces that their readers may not read
    ``comparison``        reasons for the choice of a node; two nodes or two attempts side by side
Attempts of a pod
    ``episodes``          consecutive attempts with the same outcome, and the changes between two attempts
    ``retries``           a retry as a reference to the attempt that it repeats
    ``trends``            the counts of a minute
    ``change_points``     changes of the level of counts over time
Nodes
    ``node_pools``        the pools of nodes, by setting or label, and the pools that a namespace may use
Placements
    ``pod_facts``         binds, sightings and descriptions of pods
    ``pod_timelines``     the pods of one name, separated, with their time on each node
    ``layer_seconds``     a pod's wait, divided among the layers that held it
    ``occupancy``         placements derived from binds and sightings
    ``overcommit``        devices that are allocated beyond their capacity
    ``node_history``      registrations and checks of nodes by time
    ``placement_audit``   contradictions between a placement and the cluster
    ``placement_auditor`` audits placements when everything about their time has been read

The pipeline, the API, the scheduler's simulation and the readers of logs share these functions, so that their answers
never differ.
"""
