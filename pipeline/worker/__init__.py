"""The worker: folds the decisions of its partitions into summaries and publishes them, from Kafka to Kafka.

    faust_app ─▶ agent ─▶ open_attempts ─▶ writer ─▶ batch_builder ─▶ topics
    and back: writer ─▶ offset_tracker ─▶ acknowledged, in order, once everything is published

=======================  ==================================================================================
``process``              all of it as one process
``faust_app``            the Faust app, which reads
``faust_consumer``       overrides of Faust's internals
``agent``                one coroutine over the records of all partitions
``progress``             asks the broker how much there is to read, and whether it answers
``watchdog``             pure: does the committed offset move?
``writer``               queue, batches, histories, then the acknowledgement
``batch_builder``        a batch from the writes of one round: leaves out, merges, compares
``pod_histories``        the state: the latest attempts of each pod, on a topic
``published_summaries``  whole summaries, from memory or from the topic of attempts
``batch``                pure: the records that are published together
``comparison``           pure: an attempt beside the pod's history
``writes``               pure: what the agent hands to the writer
``byte_budget``          how much may wait to be published
``open_attempts``        pure: the attempts whose records have not all come
``offset_tracker``       pure: which records may be acknowledged
``attempt_records``      pure: the records about an attempt
``metrics``              what the worker counts
=======================  ==================================================================================
"""
