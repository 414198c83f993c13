"""Why a pod waits and what would have to change, from the cluster's devices and the records. Pure: no client, no clock.

suggestions   the smallest changes after which a pod fits, each proved by the scheduler's own fit
"""
