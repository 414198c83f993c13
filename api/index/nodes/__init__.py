"""Nodes: their states, the use of their devices, and their registrations.

======================  ====================================================================
``node_list``           list of nodes, with the free part of their devices
``node_occupancy``      pods on a node at one time, with their parts of its devices
``occupancy_queries``   list of pod placements, and the placements on a node at one time
``holders``             device use of the pods on some nodes, as the fit counts it
``cluster_states``      node states of a cluster, of an attempt or at a time, and its cordoned nodes
``last_registrations``  last known registrations of nodes that are unregistered now
======================  ====================================================================
"""
