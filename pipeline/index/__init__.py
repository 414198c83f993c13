"""The index writer: documents of attempts, device verdicts, findings, counts and node states, only from their topics.

Any number of these processes share the partitions of the topics.

=================  =================================================================
``process``        reads the topics, writes batch by batch, then commits offsets
``index_writer``   writes a batch: documents, and dead letters for broken records
``batch_builder``  records as a batch of documents, and how far they may be committed
``summary_parts``  the records of a long summary, until all of them are there
``documents``      the documents of each event
``state_audit``    findings: verdicts whose node states were lost
=================  =================================================================
"""
