"""Answers about the pods of a log, without any server.

read_log  reads a log of any known scheduler to its end
log_pods  collects every pod of a log with its latest attempts, from a reader's events
answers   answers about each pod: its diagnosis, or the schedulerlog that the API would give
"""
