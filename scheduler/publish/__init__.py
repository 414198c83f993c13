"""To Kafka: the events about decisions are spooled on disk and published by one task.

node_states       when the states of nodes are written: before verdicts that refer to them, and again once a day
spool_writer      events into the spool
spool             records on disk until Kafka has them
kafka_publisher   records from the spool to Kafka
"""
