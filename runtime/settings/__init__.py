"""Settings: where they come from, what their values may be, and those that several processes share.

=========================  ===========================================================================
``settings``               settings from the environment, for models of pydantic
``flags``                  flags of a command from a model of settings
``service_settings``       settings of every process: its log, and where its metrics are served
``settings_table``         all settings of a command line, for the page about them
``variables``              names of environment variables that several processes read
``unknown_variables``      variables that look like settings and are none
``secret_files``           secrets from files: NAME_FILE names one that holds NAME
``addresses``              HOST:PORT, lists of brokers, URLs: read in one way, shown without passwords
``cluster_name``           the name of the Kubernetes cluster, checked
``object_names``           which names an API server accepts
``pod_labels``             names of pods' labels in a setting
``sizes``                  sizes as Kubernetes writes them: 64Mi, 4Gi
``kafka_connection``       settings by which Kafka is reached
``opensearch_connection``  settings by which OpenSearch is reached
=========================  ===========================================================================
"""
