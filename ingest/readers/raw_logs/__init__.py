"""Reads schedulers' logs that Fluent Bit, Vector or the OpenTelemetry Collector ship to a Kafka topic.

    record ── shippers ──▶ lines of a container ── container_readers ──▶ that container's reader ──▶ events
                                                      agent: publish, then acknowledge

- ``shippers``: the JSON of each shipper
- ``container_readers``: a reader for the log of each container
- ``agent``: publishes the events, then acknowledges the records that nothing needs any more
- ``app``: the Faust app; the only module of ``ingest`` that knows Faust
"""
