"""Commands for people at a terminal: ``schedulerlog why POD`` and others, also as ``kubectl schedulerlog``.

=============  ==================================================================================
why            why a pod waits, or why it is where it is; the rows of an attempt's nodes
pod_answer     the answer about one pod: its diagnosis with what helps, scores and findings
lists          the pods that wait, or a search of attempts
pending        pure: the pods that wait, as rows
history        the episodes of a pod
earlier_ends      pods whose end let a pod in
replay         an attempt decided again, next to its record
recent         attempts, ends, findings and alerts of the last minutes
nodes          all nodes, and a node's devices, now or at a time
trends         counts over time
report         the failures of a range of time
simulation     where a pod from a file would go
comparison     the latest attempts of two pods side by side
capacity       how many pods start now, and what would take more
plans          the plans of drains, of moves, and of nodes to add
simulated_pod  pure: that simulation by the scheduler's own fit, with diagnosis and suggestions
alerts         the alerts that fire
watching       every change, over the ends of single watches, and a line for each
notices        messages of a watch to a chat's webhook
log_files      ``explain``: pods from a scheduler's log file, without any server
progress       a line while a long file is read
log_rows       the rows of ``explain``: a diagnosis each, with what helps, scores and findings
answers        from the API to the screen: problems end the command, ``-o`` prints JSON, YAML, names, in a language
diagnosed      a diagnosis on the screen
details        nodes and time line below it
workloads      a workload on the screen
screen         output to the terminal
safe_text      pure: escapes characters that a terminal would obey
values         pure: times and durations as kubectl writes them, words for the end of an attempt
commands       the list of commands, each imported when it is called
options        the options that all commands share
exit_codes     exit codes, for scripts
kubectl        ``kubectl schedulerlog``: only the commands of this package
=============  ==================================================================================

A command starts at once: it imports no model of ``schemas`` (numpy) and no client.
"""
