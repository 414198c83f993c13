"""The worker: folds the decisions of its partitions into summaries and publishes them, from Kafka to Kafka.

    faust_app ─▶ agent ─▶ open_attempts ─▶ writer ─▶ batch_builder ─▶ topics
    and back: writer ─▶ offset_tracker ─▶ acknowledged, in order, once everything is published

==================  =======================================================================================
``process``         the worker as one process
``faust_app``       the Faust app, which reads, and overrides of Faust's internals
``agent``           one coroutine over the records of all partitions
``progress``        records left to read, whether the broker answers, whether the committed offset moves
``writer``          queue, batches, histories, then the acknowledgement
``write_queue``     writes that the agent hands to the writer, and how many bytes may wait
``batch_builder``   a batch from the writes of one round: leaves out, merges, compares
``published``       the state: the latest attempts of each pod, on a topic, and full summaries
``pod_positions``   pure: where the history of each pod is on its topic
``batch``           pure: the records that are published together
``derivations``     pure: what follows from an attempt's content, derived once for retries
``comparison``      pure: an attempt compared with the pod's history
``open_attempts``   pure: the attempts of which records are missing
``offset_tracker``  pure: the records that may be acknowledged
==================  =======================================================================================
"""
