"""From a decision to Kafka: events are built, spooled on disk, and published by one task.

identity          which scheduler of which cluster publishes
attempt           the identity of an attempt
event_builder     a decision as events: the way in (pure)
device_records    the verdicts on devices as records (pure)
node_records      the verdicts on nodes as records (pure)
picked_devices    the devices of the chosen node (pure)
state_builder     the states of nodes that verdicts refer to (pure)
node_states       when they are written: before verdicts, and again once a day
record_columns    what these share: columns as JSON (pure)
spool_writer      events into the spool
spool             records on disk until Kafka has them
kafka_publisher   records from the spool to Kafka
"""
