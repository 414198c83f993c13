"""Documents of OpenSearch, made from events and read back into them.

A document has two halves: fields to search by, and the event itself, stored whole and not indexed.

``attempts``      a whole attempt, or a repetition of one; its findings, and the fields that documents share
``devices``       device verdicts, and the devices of a node by revision
``trends``        the counts of a minute
``placements``    where a pod was, from when to when
``observations``  observed states of pods, nodes, workloads and schedulers
``forecasts``     forecasts of starts
``pod_states``    the latest state of a pod: does it wait, since when, for what
"""
