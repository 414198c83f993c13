"""What would have to change: the smallest changes after which a pod fits, each proved by the scheduler's own fit.

ask           what a pod asks, in the form that changes are tried on
trial         asks the fit what would be
suggestion    what a suggestion is and costs, and which ones are worth showing
search        what the owner of the pod may change
acts          what an administrator can do to devices and quotas, and which pods would have to end
nodes         what an administrator can do to nodes: get devices registered again, remove a lock
exclusion     the smallest set of constraints that keep the pod from every node
suggest       all of it: the way in
admission     the one change that admits most of many pods
answer        pure: the answer of all that, as the API gives it
for_many      pure: the same for many pods
texts         what a suggestion says to people
"""
