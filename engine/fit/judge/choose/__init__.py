"""Choice among a batch of nodes: verdicts and scores of one pod.

batch_evaluation  one pod against one batch of nodes, container after container: `BatchEvaluation.judge`
per_node          the reference fit for the nodes that need it
scoring           the order of trying and the scores of nodes
vendor_scores     additions of single vendors to the scores of nodes
"""
