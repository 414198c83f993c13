"""The way from a source through a reader to a sink.

protocol            the interfaces of readers and sinks
pump                moves lines from a source through a reader to a sink, and saves a checkpoint
checkpoint          the position in a log, on disk
kafka               the sink that sends to Kafka
report              a summary of a reading, for a person
metrics             the same for Prometheus
trusted_containers  containers whose shipped lines are believed
trusted_reporters   reporters whose Kubernetes events are believed
options             options that the commands share
"""
