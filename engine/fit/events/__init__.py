"""Events about a decision, and about the states of nodes that it refers to. Pure.

attempt         the identity of an attempt, and of the scheduler that publishes it
event_builder   a decision as events: `build_events` is called first
decision_digest  equal for two decisions whose records say the same
device_records  the verdicts on devices as records, and the devices of the chosen node
node_records    the verdicts on nodes as records
state_builder   the states of nodes that verdicts refer to
record_columns  columns as JSON: the shared part of the records
"""
