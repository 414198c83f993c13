"""From decisions to what people read: the processes behind Kafka.

    Kafka: decisions ─▶ worker ─▶ Kafka: attempts, messages, findings, device verdicts, counts, dead letters
    Kafka: attempts, device verdicts, findings, trends, node states ─▶ index ─▶ OpenSearch ─▶ api
    Kafka: attempts, pods, nodes ─▶ placements ─▶ OpenSearch: occupancy, observations; Kafka: findings
    Kafka: attempts, messages, findings, … ─▶ api, alerts, kube_events

Floors, from the top; a module imports only what lies below it:

================  =========================================================================
``worker``        folds the records of each attempt into its summary, and writes that
``index``         what is on the topics, as documents of OpenSearch
``placements``    where each pod is and which devices it holds, with audits
``alerts``        rules over the topics, and alerts for Alertmanager
``kube_events``   messages as Kubernetes events
``admin``         commands of an operator: provision, retention
``trends``        the counts of each minute, summed up beside the worker
``dead_letters``  the commands about records that could not be processed, and the log's lines about them
``sinks``         OpenSearch and Kafka: documents and records, written until they are stored
``settings``      the settings, each read from an environment variable
``node_pools``    which pool a node is in
``dead_letter``   a record that could not be processed as a dead letter, and back
``record_time``   when Kafka received a record
================  =========================================================================
"""
