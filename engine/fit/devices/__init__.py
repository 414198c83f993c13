"""Devices of the cluster: what nodes register and what pods hold of them, as numpy columns kept by increments. Pure.

cluster_state   the columns of the whole cluster: every change goes in here
node_readings   which devices count for each node: its registration is read again, kept or dropped
node_entry      one registered node, and what does not fit into columns
node_columns    which columns there are, and how a node fills its rows
column_table    growable columns
node_revisions  the revision of each node's state, and which was written
pod_usage       what one pod holds of each device
quota           what a namespace has left of its quotas
shared_nodes    nodes that are left to another scheduler
device_matrix   the devices of many nodes as matrices (slots, nodes), for `judge`
as_of           the cluster as an attempt saw it, from the records about it
"""
