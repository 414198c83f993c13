"""Publishing to Kafka: the events about decisions are spooled on disk, and one task publishes them.

observer          changes of the cluster into the columns, events about them
node_checks       problems in how nodes register, as time passes
node_states       states of nodes, before verdicts that refer to them, and again once a day
full_attempts     attempts that a later one of the pod may refer to
spool_writer      events into the spool
spool             records on disk until Kafka has them
kafka_publisher   records from the spool to Kafka
"""
