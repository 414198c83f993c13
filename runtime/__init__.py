"""Parts that every process needs, whatever its task: settings, HTTP, telemetry, and the clients of the stores.

=====================  =================================================================================================
``settings``           settings: sources, value types, and the groups that several processes share
``cli``                parts that all commands of a command line share
``http``               HTTP servers within bounds that no client can exceed, and TLS certificates of both sides
``telemetry``          logs, metrics, health and traces of a process
``files``              files and folders of a process
``kafka``              Kafka; the only package that imports aiokafka
``opensearch``         OpenSearch; the only package that makes clients of it
``kubernetes``         Kubernetes' API server: requests, list and watch, leader election
``errors``             errors that end a command with one line
``refused_credentials``  credentials that a store refuses, also those that a process reads only at its start
``supervision``        parts of one process: one that fails starts again, the others continue
``signals``            work until SIGTERM or SIGINT
``backoff``            pauses between tries, limits of requests, and waiting for a store that is down
``bounded_cache``      mapping that drops its oldest entries
``durations``          durations in Go's notation: 10s, 1h30m
``log_once``           logs of a problem when it changes, not while it lasts
=====================  =================================================================================================
"""
