"""Kafka, for every service: the only package that knows aiokafka. Nothing is imported here: ``record`` is pure.

====================  =======================================================================================
``record``            a record that was read, and one to be sent: values without a client
``producer``          a producer that acknowledges what all replicas have; sending until it is acknowledged
``consumer``          consumers without a group or with one, read again and again, or once to their end
``reader``            what lies on topics: whole partitions, and records by offset
``lease``             of several processes one works, the others wait
``positions``         how far a group has read a topic, and how far the topic goes
``topics``            which topics there are; making them and correcting their configuration
``inspection``        what Kafka has, as it is: brokers, topics, their configuration
``security``          addresses, TLS and SASL, as arguments of every client
``refusals``          why a broker refuses a connection, and what to do about it
``faust_connection``  the same for a Faust app
``unpacking``         bounds on what compressed records are unpacked to
``errors``            the errors of the client that others catch, and their words
====================  =======================================================================================
"""
