"""Admission of pods by HAMi's webhook, from values to values. Pure.

admit     admission of a pod: checks and changes in HAMi's order
mutate    changes to a container
vendor_mutations  changes to a container for vendors other than NVIDIA
container_quantities  the quantities of a container
"""
