"""Checks of devices: for all nodes at once, and one by one as the reference.

verdict_codes   the numbers of verdicts
fit             the checks for all nodes at once
sequential_fit  the checks where a verdict depends on devices taken before (NUMA binding, quotas)
topology        the devices that a topology-aware pod gets
reference_fit   the rules in their plain form, one device after the other; MIG needs it, tests compare with it
"""
