"""Kafka, for every service: the only package that imports aiokafka. This module imports nothing: ``record`` is pure.

====================  =======================================================================================
``record``            a record that was read, and one to be sent: values without a client
``producer``          a producer that acknowledges what all replicas have; sending until it is acknowledged
``consumer``          consumers without a group or with one, read again and again, or once to their end
``broker_clock``      the broker's time, as the witness of this machine's clock
``reader``            records on topics: all of a partition, or at some offsets
``lease``             lease by which one of several processes works and the others wait
``topics``            existing topics; creation and correction of their configuration
``inspection``        present state of Kafka: brokers, topics, their configuration
``security``          addresses, TLS and SASL, as arguments of every client
``refusals``          reasons why a broker refuses a connection, and their remedies
``faust_connection``  addresses and credentials for a Faust app
``quiet_fetches``     fewer fetches while nothing arrives
``unpacking``         bounds on the size of unpacked records
``errors``            errors of the client that other packages catch, and their words
====================  =======================================================================================
"""
