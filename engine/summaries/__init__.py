"""From decisions to what people read: pure functions, without a broker, an index or a clock.

One attempt
    ``fold``              the records of an attempt as one summary
    ``missing_records``   records that are missing, in words
    ``tally``             device rows counted by verdict and model
    ``recount``           nodes whose device rows and node records count differently
    ``node_table``        node records as one table, checked against the device rows
    ``merge``             two summaries of one attempt as one
    ``reports``           who reported an attempt, the best source first
    ``matching``          which reports of several sources are about one try
    ``attempt_audit``     contradictions within one attempt
    ``text``              the one place that writes ``X/Y Reason``
    ``messages``          the event lines of ``kubectl describe``
    ``cut``               texts cut to the limit of Kubernetes events
    ``answer``            the schedulerlog JSON
    ``named_pods``        pods of other namespaces in texts, and the texts without them
    ``comparison``        why a node was chosen; two nodes or two attempts side by side
Attempts of a pod
    ``episodes``          retries with the same outcome, and what changed between two attempts
    ``retries``           a retry as a reference to the attempt that it repeats
    ``trends``            the counts of a minute
    ``change_points``     where the level of counts over time changes
Placements
    ``pod_facts``         binds and sightings of pods
    ``pod_descriptions``  what several sources say of where a pod comes from, as one
    ``placement_interval``  the time of one pod on one node
    ``pod_timelines``     the pods of one name, separated, with their time on each node
    ``occupancy``         placements derived from binds and sightings
    ``overcommit``        devices that are allocated beyond their capacity
    ``node_history``      registrations and checks of nodes by time
    ``placement_audit``   contradictions between a placement and the cluster
    ``placement_auditor`` audits placements when everything about their time has been read

The pipeline, the API, the scheduler's simulation and the readers of logs share these functions, so that their answers
never differ.
"""
