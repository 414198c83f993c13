"""Suggestions: the smallest changes after which a pod fits, each proved by the scheduler's own fit.

ask           device requests of a pod, in the form that changes are tried on
trial         asks the fit hypothetical questions
suggestion    suggestions, their costs, and the choice of those worth showing
search        changes that the owner of the pod can make
acts          changes of devices and quotas by an administrator, and pods that would have to end
nodes         changes of nodes by an administrator: get devices registered again, remove a lock
exclusion     the smallest set of constraints that keep the pod from every node
suggest       entry point: all suggestions for one pod
answer        pure: suggestions as the API answers them, with their texts
admission     pure: the one change that admits most of many pods, and its answer
"""
