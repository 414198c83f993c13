"""Folds decisions into summaries and writes them where people read them: OpenSearch, Kafka and Kubernetes events.

Each of these is a process of its own (``python -m pipeline NAME``):

``worker``         decisions to summaries, messages and documents; as many of it as there are partitions
``placements``     which pod holds which devices, and the audits of that; one
``kube_events``    messages to events of their pods (``events``)
``alerts``         rules to alerts, and alerts to an Alertmanager; one each

They share:

``settings``       their settings, each with its environment variable
``sinks``          writing to the index and to Kafka: retry, split, dead-letter or done
``dead_letters``   records that can't be processed and documents that the index refuses: as records, and as commands
``admin``          commands of operators: topics and templates, retention
``node_pools``     which node belongs to which pool
``record_time``    when Kafka received a record
"""
