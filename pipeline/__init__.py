"""From decisions to what people read: folds the records of each attempt and writes the result where people look.

    Kafka: decisions ─▶ app ─▶ decisions ─▶ attempts ─▶ writer ─┬▶ sinks.opensearch   one document per attempt, and the
                       (Faust)  (decode)    (fold)              │                     device records
                                                                └▶ sinks.kafka        attempts, messages, dead letters
    and back: writer ─▶ offsets ─▶ acknowledged, in order, only what is written

==================  ===============================================================================
``settings``        what can be set, each with its environment variable
``provision``       topics and index templates, brought to what the contract says
``app``             the Faust app; the only module that knows Faust
``decisions``       the agent: one coroutine over the records of all partitions
``reading``         records decoded and counted, each distinct content once
``attempts``        pure: which attempts of a partition are open, which have come to their end
``offsets``         pure: which records may be acknowledged
``tellings``        pure: what is written about an attempt, and what a late record adds
``pods``            pure: the attempt before, which a retry is compared with
``minutes``         pure: the counts of each minute, from what its attempts contribute
``writer``          batches of tellings to the index and the topics, then the acknowledgement
``sinks``           the index and the broker: retry, split, dead-letter or done
``dead_letters``    pure: a record that could not be understood, set aside and as it was
``set_aside``       dead letters listed and put back
``health``          ``/metrics``, ``/healthz``, ``/readyz``
``progress``        pure: does the worker still get on?
``worker``          all of it as one process
``placements``      who is where with which devices: a process of its own, as ``alerts`` and ``events``
==================  ===============================================================================
"""
