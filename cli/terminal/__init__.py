"""``schedulerlog why POD`` and what else people ask at a terminal; as ``kubectl schedulerlog`` too.

=============  ==================================================================================
why            why a pod waits, or why it is where it is
lists          the pods that wait; attempts that are searched for
pending        pure: the pods that wait, as rows
history        the episodes of a pod
nodes          a node's devices, now or at a time
trends         counts over time
report         the failures of a range of time
simulation     where a pod of a file would go
simulated_pod  pure: the same by the fit, with diagnosis and suggestions
watching       a command's answer again, each time that something changes
log_files      ``explain``: the same of a scheduler's log, without any server
answers        from the API to the screen: problems end the command, ``-o`` prints documents
documents      an answer as JSON, YAML or names
diagnosed      a diagnosis on the screen
node_rows      pure: the nodes of an attempt as rows, equally judged ones in one
screen         where text is printed
safe_text      pure: text that a terminal shows and does not obey
times          pure: times and durations as kubectl writes them
words          pure: how the end of an attempt and GPU-hours are written
commands       the list of commands, each imported when it is called
options        the options that all commands share
exit_codes     how a command ends
kubectl        ``kubectl schedulerlog``: the commands of this package alone
=============  ==================================================================================

A command starts at once: it imports no model of ``schemas`` (numpy) and no client.
"""
