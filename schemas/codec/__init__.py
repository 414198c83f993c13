"""Codec between events and Kafka records.

``records``        an event as key, JSON value and CloudEvents headers, and back
``chunking``       splits long events into records below the size that every intermediary forwards
``code_tables``    merges and reduces dictionary-encoded columns
``oversize``       what is published in the place of an event that is too large for Kafka
``trace_context``  the trace that a record belongs to
"""
