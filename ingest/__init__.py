"""What unmodified schedulers say, turned into the project's events.

A *source* (``ingest.sources``) yields lines with their place, a *reader* (``ingest.hami``, ``ingest.kai``, …) turns
them into events and counts every line by what became of it, a *sink* sends the events to Kafka or explains them to a
person. Readers are pure: no file, clock, network or log in them.
"""
