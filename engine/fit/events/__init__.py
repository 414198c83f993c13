"""A decision, and the states of nodes that it refers to, as the events about them. Pure.

identity          which scheduler of which cluster publishes
attempt           the identity of an attempt
event_builder     a decision as events: the way in
device_records    the verdicts on devices as records
node_records      the verdicts on nodes as records
picked_devices    the devices of the chosen node
state_builder     the states of nodes that verdicts refer to
record_columns    what these share: columns as JSON
"""
