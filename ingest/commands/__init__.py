"""The commands of ``ingest``.

logs          commands that read logs
services      commands that run until they are stopped
run_command   the steps of a command that reads a log
publishing    publishes the events of a log to Kafka
from_cluster  a pod's log and the nodes, from the API server
explain       the sink that answers for one pod
"""
