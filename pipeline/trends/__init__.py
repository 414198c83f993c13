"""The trend counter: contributions of attempts to their minutes, summed up into rows. A task of the worker's process.

    Kafka: attempt counts ─▶ process ─▶ partition_counts ─▶ trends (topic)

====================  ==========================================================================
``process``           the task: reads the topic, publishes rows every few seconds, commits
``partition_counts``  pure: the rows of one partition, and from where to read them again
====================  ==========================================================================
"""
