"""HAMi's admission webhook, from values to values. Pure.

review    AdmissionReview in, AdmissionReview out
admit     whether a pod is admitted: checks and changes in HAMi's order
mutate    what changes in a container
vendor_mutations  the same for vendors other than NVIDIA
patch     what a changed pod differs in, as JSON Patch
quantities_of  the quantities of a container
"""
