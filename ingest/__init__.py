"""Turns the logs and events of unmodified schedulers into the project's events.

A *source* yields lines with their positions, a *reader* turns them into events and counts every line by its outcome, a
*sink* sends the events to Kafka or explains them to a person. Readers are pure: no file, clock, network or log in them.

``sources``       files, standard input, a pod's log through the API server
``lines``         framing of lines, klog, what is unknown
``hami``          HAMi's scheduler log
``kai``           KAI-Scheduler's log
``kube``          pods, nodes and events of a cluster
``sniffer``       scheduler-sniffer's log and gRPC service
``raw_logs``      the topic of shipped log lines
``protocol``      what a reader promises
``pump``          a source through a reader into a sink, with a checkpoint behind what the sink has taken
``checkpoint``    how far a log was read, on disk
``kafka``         the sink that sends to Kafka
``explain``       the sink that answers for one pod
``report``        what was read, in words
``metrics``       what was read, for Prometheus
``options``       the options that the commands share
``run_command``   a command that reads a log
``commands``      the other commands
``errors``        what ends a command with one line
"""
