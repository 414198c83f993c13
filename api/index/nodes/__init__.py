"""Nodes: their states, what their devices hold, and what they registered.

======================  ====================================================================
``node_list``           the list of nodes, and what is free of their devices
``node_occupancy``      which pods held how much of a node's devices at one time
``occupancy_queries``   the list of pod placements, and the placements on a node at one time
``holders``             what the pods on some nodes hold, as the fit counts it
``cluster_states``      the node states of a whole cluster, of an attempt or at a time
``clusters``            which clusters the index has records of
``cordoned_nodes``      which nodes take no further pods
``last_registrations``  what unregistered nodes registered last
======================  ====================================================================
"""
