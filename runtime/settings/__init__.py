"""Settings: their sources, the types of their values, and the settings that several processes share.

=========================  ===========================================================================
``settings``               settings from the environment, for models of pydantic
``flags``                  flags of a command from a model of settings
``service_settings``       settings of every process: its log, and where its metrics are served
``settings_table``         all settings of a command line, for the page of settings
``variables``              names of environment variables that several processes read
``unknown_variables``      variables that look like settings and are none
``secret_files``           secrets from files: NAME_FILE names a file that holds NAME
``addresses``              HOST:PORT, lists of brokers, URLs: read in one way, shown without passwords
``cluster_name``           name of the Kubernetes cluster
``object_names``           names that an API server accepts
``pod_labels``             names of pods' labels in a setting
``sizes``                  sizes as Kubernetes writes them: 64Mi, 4Gi
``kafka_connection``       connection to Kafka
``opensearch_connection``  connection to OpenSearch
=========================  ===========================================================================
"""
