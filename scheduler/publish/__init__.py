"""From a decision to Kafka: events are built, spooled on disk, and published by one task.

attempt           the identity of an attempt
event_builder     a decision as events: the way in (pure)
device_records    the verdicts on devices as records (pure)
node_records      the verdicts on nodes as records (pure)
picked_devices    the devices of the chosen node (pure)
node_states       the states of nodes that verdicts refer to, and the task that writes them
record_columns    what these share: columns as JSON (pure)
spool_writer      events into the spool
spool             records on disk until Kafka has them
kafka_publisher   records from the spool to Kafka
"""
