"""Placements: the node and the devices of each pod, and since when; observations; audits of placements.

    Kafka: attempts, pods, … ─▶ process ─▶ input_decoder ─▶ batch_writer ─┬▶ index
                                                                 ▲    │       └▶ findings (topic)
                                              what the index     │    ▼
                                              has of a subject ──┘ occupancy_state, audits

``input_decoder``      pure: a record as an input; records that concern no placement are not decoded
``subjects``           pure: subjects of inputs (a pod, a node, …), and the state in memory of each
``occupancy_state``    pure: pods and nodes in memory, and the documents that follow from an input
``waits``              pure: waiting times of pods, each measured once
``device_holdings``    pure: the pods that hold each device, and the devices to check for overcommitment
``observation_dedup``  pure: changes among observations, and repetitions of the one before
``occupancy_queries``  pure: searches for what the index has of pods and nodes, and their answers
``audit_queries``      pure: searches of the audits, and their answers
``audits``             placements that can't be right, where several records have to be compared
``start_forecasts``    forecasts of the starts of refused pods, from holders in memory and holds in the index
``batch_writer``       a batch of records: loads what is not in memory, writes documents, publishes findings
``process``            the process: where it holds the lease, consumes the topics, commits what is written
"""
