"""Settings: their sources, the types of their values, and the settings that several processes share.

=========================  ===========================================================================
``settings``               settings from the environment, their types, and those of every process
``flags``                  flags of a command from a model of settings
``settings_table``         all settings of a command line, for the page of settings
``variables``              names of environment variables, and variables that look like settings and are none
``secret_files``           secrets from files: NAME_FILE names a file that holds NAME
``present_context``        TLS context of the files of certificates, which follows their changes
``addresses``              HOST:PORT, lists of brokers, URLs: read in one way, shown without passwords
``names``                  names of clusters, labels and objects, checked
``node_pools``             pools of nodes, by patterns of their names
``kafka_connection``       connection to Kafka
``opensearch_connection``  connection to OpenSearch
=========================  ===========================================================================
"""
