"""The pipeline: processes that make summaries, documents and alerts of decisions, from Kafka on.

    Kafka: decisions ─▶ worker ─▶ Kafka: attempts, messages, findings, device verdicts, counts, dead letters
    Kafka: attempts, device verdicts, findings, trends, node states ─▶ index ─▶ OpenSearch ─▶ api
    Kafka: attempts, pods, nodes ─▶ placements ─▶ OpenSearch: occupancy, observations; Kafka: findings
    Kafka: attempts, messages, findings, … ─▶ api, alerts, kube_events

Floors, from the top; a module imports only what lies below it:

================  =========================================================================
``worker``        folds the records of each attempt into its summary, and writes that
``index``         the topics' records as documents of OpenSearch
``placements``    the node and the devices of each pod, with audits
``alerts``        rules over the topics, and alerts for Alertmanager
``notify``        messages to people who subscribed
``kube_events``   messages as Kubernetes events
``admin``         commands of an operator: provision, retention, dead letters
``trends``        the counts of each minute, summed up in the worker's process
``sinks``         OpenSearch and Kafka: documents and records, written until they are stored
``metrics``       metrics of every process, and of the sinks that it has
``settings``      the settings, each read from an environment variable
``dead_letter``   a record that could not be processed as a dead letter, and back; the log's lines about them
================  =========================================================================
"""
