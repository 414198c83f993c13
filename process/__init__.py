"""What every process needs, whatever its task. Imports nothing else of this project.

=========================  ===============================================================================
``cli``                    command lines with plain help; one line on stderr for what the caller can mend
``lazy_commands``          groups of commands that import a command when it is called
``addresses``              HOST:PORT, lists of brokers, URLs: read in one way, shown without passwords
``cluster_name``           the name of the Kubernetes cluster, checked
``object_names``           which names an API server accepts
``pod_labels``             names of pods' labels in a setting
``durations``              durations as Go writes them: 10s, 1h30m
``sizes``                  sizes as Kubernetes writes them: 64Mi, 4Gi
``settings``               settings from the environment, for models of pydantic
``printable``              text without control characters
``yaml_lines``             YAML as Kubernetes reads it, with the line of every key
``private_files``          files that a process writes for itself: mode 0600, never through a link
``secret_files``           secrets from files: NAME_FILE names one that holds NAME
``kafka_connection``       settings by which Kafka is reached
``opensearch_connection``  settings by which OpenSearch is reached
``descriptors``            how many files and connections a process may have open
``tls``                    TLS towards servers: whom we trust, and how we are known
``server_tls``             HTTPS with certificates that may be replaced while connections are open
``certificate_authority``  a private authority that signs certificates, for who has none; needs cryptography
``install_command``        the command that adds a package to this process' environment
``version``                the version of this program
``variables``              names of environment variables that several processes read
``flags``                  flags of a command from a model of settings
``service_settings``       settings of every process: its log, and where its metrics are served
``settings_table``         all settings of a command line, for the page about them
``unknown_variables``      variables that look like settings and are none
``errors``                 what ends a command with one line
``signals``                work until SIGTERM or SIGINT
``exposition``             the metrics of a process in Prometheus' text or as OpenMetrics
``bodies``                 bodies of requests, within the memory that all callers share
``patient_http``           uvicorn's HTTP protocol, with bounds on what clients send and how long they take
``own_names``              whether a server on loopback is asked under a name of this machine
``tls_listener``           connections over HTTPS until the handshake is done, and uvicorn on them
``health``                 /metrics, /healthz and /readyz
``profiled``               ``--profiling`` for a command that runs for long
``profiling``              the profiles themselves, imported only with ``--profiling``
``read_at_scrape``         metrics whose values other objects hold
``logs``                   the format of the log, and how often libraries may repeat a complaint
``tracing``                spans of OpenTelemetry, where the settings name a collector
``otlp``                   the spans themselves, imported only then
``log_once``               log a problem when it changes, not while it lasts
``backoff``                pauses between tries, and waiting for a store that is down
``scratch``                a folder of the process, while it runs
``state_folder``           the folder of what has to outlive a process
``bounded_cache``          a mapping that drops its oldest entries
=========================  ===============================================================================
"""
