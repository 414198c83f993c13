"""One pod against all devices: request, checks, choice, as HAMi does it. Pure: values in, values out.

    request ──▶ checks ──▶ vendors ──▶ choose ──▶ decide

request        the pod's requests of each vendor, and the constraints of its annotations
checks         the checks of devices, and the verdicts as numbers
vendors        the rules of single vendors
choose         one pod against a batch of nodes: verdicts, scores, choice
decision       the result of ``decide``
decide         the way in: one pod against all offered nodes
fitting_nodes  whether the pod fits on any of many nodes, and nothing else
reservation    what an allocation writes into the pod and holds in the cluster state
plugin_keys    annotations that the vendors' device plugins read
"""
