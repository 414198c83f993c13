"""The pure core: decides, summarizes and explains. It knows values only: no client, event loop, clock, disk or log.

    hami ──▶ fit ──▶ summaries ──▶ diagnosis ──▶ suggestions

snapshot     a cluster at one moment, from its Kubernetes objects
filters      kube-scheduler's own filters on a snapshot: verdicts per node, and its message
claims       resource claims (DRA) on a snapshot: verdicts and devices per node, reasons per device
judging      filters and claims together: one pod on a snapshot
hami         wire format of HAMi: annotations, registrations, allocations, reason codes
device_parts devices that Koordinator or Volcano gives parts of, with what pods hold of them
fit          the decision about one pod: fit, scores, choice, and its events
summaries    decisions folded into summaries, messages, episodes, placements
diagnosis    the reason why a pod waits, as a walk over facts
admission    HAMi's webhook on a pod that is made
simulation   pods that do not exist yet, judged as the whole cluster would
capacity     what a cluster takes: pods that start now, and plans
forecasts    when a waiting pod starts, from recorded holds
cases        facts about the pods of a case: of files, or of a live cluster
suggestions  the smallest changes after which a pod fits, each proved by the fit

Scheduler, readers, pipeline, API and command line share these functions, so their answers never differ.
"""
