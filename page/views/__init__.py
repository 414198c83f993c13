"""View models of page and terminal: each is derived once for both, so that they never differ. Pure.

================  =========================================================================
node_groups       the nodes of an attempt, grouped by identical refusal
answered_nodes    those groups from the JSON of the API; starts without numpy, for terminals
summarized_nodes  those groups from an attempt's columns, for thousands of nodes
log_pods          the pods of a scheduler's log, waiting ones first
translations      outcomes, constraints, meanings of error codes and gaps of a source
fleet             sums over the nodes of a list, by model and by namespace, and bars of their devices
amounts           amounts, and the order of names, as people read them
================  =========================================================================
"""
