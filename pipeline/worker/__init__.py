"""The worker: folds the decisions of its partitions into summaries and writes them to the index and the topics.

    faust_app ─▶ agent ─▶ open_attempts ─▶ writer ─▶ batch_builder ─▶ index and topics
    and back: writer ─▶ offset_tracker ─▶ acknowledged, in order, once everything is written

=====================  ====================================================================================
``process``            all of it as one process
``faust_app``          the Faust app, which reads
``faust_consumer``     overrides of Faust's internals
``agent``              one coroutine over the records of all partitions
``watchdog``           pure: does the committed offset move?
``writer_pool``        the writers, side by side
``writer``             queue, batches, then the acknowledgement
``batch_builder``      a batch from the writes of one round: looks up, compares, counts
``stored_attempts``    what is read back from the index
``batch``              pure: documents and records that are written together
``writes``             pure: what the agent hands to a writer
``byte_budget``        how much may wait to be written
``open_attempts``      pure: the attempts whose records have not all come
``offset_tracker``     pure: which records may be acknowledged
``attempt_documents``  pure: documents and records of an attempt, and the searches for earlier ones
``pod_history``        pure: the latest attempt of each pod
``minute_counts``      pure: the counts of each minute, from what its attempts contribute
``metrics``            what the worker counts
=====================  ====================================================================================
"""
