"""The way from a source through a reader to a sink.

protocol            the interfaces of readers and sinks, the counts of a reading, and their summary for a person
pump                moves lines from a source through a reader to a sink, and saves a checkpoint
checkpoint          the position in a log, on disk
kafka               the sink that sends to Kafka
lease               one of several processes reads, the others wait
metrics             the same counts for Prometheus
trusted_containers  containers whose shipped lines are believed
trusted_reporters   reporters whose Kubernetes events are believed
options             options that the commands share
"""
