"""The latest attempts of the latest pods in memory, filled from the attempts topic.

==================  ==========================================================================
attempts_consumer   reads the topic and puts its records into memory
latest_attempts     pod to its latest attempt, as the bytes of its records
lru                 a least-recently-used store, bounded by count and by bytes
==================  ==========================================================================
"""
