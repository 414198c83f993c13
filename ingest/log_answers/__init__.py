"""Answers about the pods of a log, without any server.

read_log        reads a log of any known scheduler to its end
log_pods        the sink that collects every pod of a log
attempt_in_log  one attempt, from a reader's events
answers         a diagnosis of each pod
"""
