"""Who is where, since when and with which devices; what was seen of pods and nodes; what of it can't be right.

    Kafka: attempts, pods, nodes ─▶ process ─▶ reading ─▶ keeper ─▶ book ─┬▶ index: occupancy, observations
                                                  (decode)       ▲  (pure)  └▶ topic and index of findings
                                                                 └ what the index knows of a pod or node

``reading``    pure: a record as what it says, without reading what nobody asks for
``book``       pure: the pods and nodes at hand, and which documents follow from what was said
``questions``  pure: what the index is asked, and what its answers say
``latest``     pure: what was said last of one thing, and whether it is said again
``ledger``     pure: who holds which device, and what of it has to be looked at
``pools``      pure: which pools a namespace may use
``recall``     pure: what the audits ask the index
``audits``     what about a placement can't be right, where more than its attempt shows it
``keeper``     a batch: asks the index for what is not at hand, writes, tells findings
``process``    the consumer, and how far it has read
``command``    the command line
"""
