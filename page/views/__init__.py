"""View models: what page and terminal show of the same answer, worked out once, so that they never differ. Pure.

================  =========================================================================
node_groups       the nodes of an attempt, grouped by identical refusal
answered_nodes    those groups from the JSON of the API; starts without numpy, for terminals
log_pods          the pods of a scheduler's log, those that wait first
error_meanings    what the codes of errors mean, in both languages
constraints       the sentence about what together keeps a pod from every node, in both languages
source_gaps       what the source of an attempt leaves open, in both languages
amounts           how memory, GPU-hours and other numbers are written
waits             of how many placed pods the wait is known
natural_order     the order of names: node2 before node10
tables            reads the words beside these modules
summarized_nodes  those groups from an attempt's columns, for thousands of nodes
================  =========================================================================
"""
