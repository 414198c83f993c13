"""The cluster's devices: what nodes register and what pods hold of them, as numpy columns kept by increments. Pure.

cluster_state        the columns of the whole cluster: the way in
column_table         growable columns
node_columns         which columns there are, and how a node fills its rows
node_entry           one registered node, and what does not fit into columns
node_readings        which devices count for each node
node_revisions       the revision of each node's state, and which was written
registration_step    whether a node's registration is read again, kept or dropped
device_matrix        the devices of many nodes as matrices (slots, nodes)
pair_scores          how well a node's devices are connected with each other
pod_usage            what one pod holds of each device
as_of                the cluster as an attempt saw it, from the records about it
quota                what a namespace has left of its quotas
"""
