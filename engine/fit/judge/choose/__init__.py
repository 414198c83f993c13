"""One pod against a batch of nodes: verdicts, scores and the choice.

batch_evaluation  one pod against one batch of nodes, container after container
per_node          the reference fit for the nodes that need it
results           matrices of verdicts as flat rows and typed refusals
scoring           the order of trying and the scores of nodes
vendor_scores     additions of single vendors to the scores of nodes
"""
