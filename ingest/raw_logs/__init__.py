"""Lines that Fluent Bit, Vector or the OpenTelemetry Collector ship to a Kafka topic, read as the logs they were.

    record ── shippers ──▶ lines of a container ── streams ──▶ that container's reader ──▶ events
                                                      agent: publish, then acknowledge

``app`` is the one module here that knows Faust.
"""
