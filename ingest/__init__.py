"""Reads what unmodified schedulers write, and publishes it as schedulerlog's events.

A *source* yields lines with their positions, a *reader* turns them into events and counts every line by its outcome, a
*sink* sends the events to Kafka or explains them to a person. Readers are pure: they use no file, clock, network or
logging.

``sources``       files, standard input, a pod's log through the API server
``lines``         framing of lines, klog, the shape of unknown lines
``hami``          the reader of HAMi's scheduler log
``kai``           the reader of KAI-Scheduler's log
``kube``          the reader of pods, nodes and events of a cluster
``sniffer``       the reader of scheduler-sniffer's log and gRPC service
``raw_logs``      the topic to which log shippers send lines
``node_states``   states of nodes' devices as logs show them, by a revision of their content
``protocol``      what a reader and a sink provide
``readers``       the readers of logs, by name
``pump``          moves lines from a source through a reader to a sink, and saves a checkpoint
``checkpoint``    how far a log was read, on disk
``kafka``         the sink that sends to Kafka
``attempt_in_log``  what a reader's events say of one attempt
``explain``       the sink that answers for one pod
``log_pods``      the sink that answers for every pod of a log
``log_answers``   what a log says of its pods: a diagnosis of each
``read_log``      reads a log of any known scheduler to its end
``report``        a summary of what was read, for a person
``metrics``       the same for Prometheus
``trusted_containers``  whose shipped lines are believed
``trusted_reporters``   whose Kubernetes events are believed
``options``       the options that the commands share
``run_command``   a command that reads a log
``publishing``    publishes what a log holds to Kafka
``from_cluster``  a pod's log and the nodes, of the API server
``commands``      the commands that read logs
``services``      the commands that run until they are stopped
``errors``        what ends a command with one line
"""
