"""The worker: folds the decisions of its partitions into summaries and writes them to the index and the topics.

    Kafka ─▶ faust_app ─▶ agent ─▶ writer_pool ─▶ writer ─▶ index and topics
                            ▲                         │
                            └── offsets acknowledged ─┘   in order, only behind what is written

``process``             the worker as a process: waits for the stores, reads, writes, restarts reading, ends
``faust_app``           the Faust app: which records are read, and how they are acknowledged
``faust_consumer``      the overrides of Faust's internals
``agent``               one coroutine over the records of all partitions
``record_decoder``      records decoded and counted, each distinct content once
``open_attempts``       pure: which attempts of a partition are open, and which have come to their end
``offset_tracker``      pure: which offsets may be acknowledged
``writes``              what the agent hands to a writer
``writer_pool``         writers side by side, each with its share of the partitions
``writer``              rounds of writes to the index and the topics, then the acknowledgement
``batch``               what one round writes
``batch_builder``       a round's writes compared with what came before, and counted
``byte_budget``         how many bytes may wait to be written
``stored_attempts``     attempts read back from the index
``attempt_documents``   pure: the documents and records of an attempt
``device_documents``    pure: the documents of device verdicts
``pod_history``         pure: the attempt before, which a retry is compared with
``minute_counts``       pure: the counts of each minute, from what its attempts contribute
``watchdog``            pure: does the worker still make progress?
``metrics``             what it counts
"""
