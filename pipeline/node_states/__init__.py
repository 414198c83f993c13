"""Node states in the index: what verdicts on devices refer to, for the API and for readers that rebuild a cluster.

Any number of these processes share the partitions of the topic.

=================  ==========================================================
``command``        the command line
``process``        reads the topic, writes, then commits offsets
``state_writer``   a batch of records as documents and dead letters
``metrics``        what the process counts
=================  ==========================================================
"""
