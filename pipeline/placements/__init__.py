"""Which pod is on which node with which devices, since when; what was observed; audits of placements.

    Kafka: attempts, pods, … ─▶ process ─▶ input_decoder ─▶ batch_writer ─┬▶ index
                                                                 ▲    │       └▶ findings (topic)
                                              what the index     │    ▼
                                              has of a subject ──┘ occupancy_state, audits

``input_decoder``      pure: a record as an input; records that concern no placement are not decoded
``subjects``           pure: what inputs are about (a pod, a node, …), and what is in memory of each
``occupancy_state``    pure: pods and nodes in memory, and the documents that follow from an input
``placement_documents`` pure: documents of observations, and what a document was made of
``waits``              pure: how long pods waited, each measured once
``device_holdings``    pure: which pods hold which device, and which devices to check for overcommitment
``observation_dedup``  pure: is an observation a change, or a repetition of the one before?
``occupancy_queries``  pure: searches for what the index has of pods and nodes, and their answers
``audit_queries``      pure: searches of the audits, and their answers
``audits``             finds placements that can't be right where several records have to be compared
``pools``              pure: which node pools a namespace may use
``batch_writer``       a batch of records: loads what is not in memory, writes documents, publishes findings
``process``            the process: where it holds the lease, consumes the topics, commits what is written
``metrics``            what the process counts
``command``            the command line
"""
