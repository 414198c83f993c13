"""The commands of ``ingest``.

logs          commands that read logs: the reader of each
services      commands that run until they are stopped
run_command   reads a log and publishes its events to Kafka
from_cluster  a pod's log and the nodes, from the API server
"""
