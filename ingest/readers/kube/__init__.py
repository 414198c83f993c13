"""Reports of a Kubernetes cluster about scheduling: events, conditions of pods and nodes, node annotations.

    object ── objects ──▶ observations of pods and nodes
    event ── scheduling_events ──▶ SchedulingEvent ── open_attempts ──▶ EventGroup ── events ──▶ attempt

It works with any scheduler that explains itself in events: kube-scheduler (with extenders), HAMi, KAI, Volcano,
Koordinator.

- ``watch``: lists and watches the objects of a cluster; with ``owners`` the only module that connects to the API server
- ``owners``: whole chains of pods' owners
- ``reader``: objects in, events out; remembers what was already reported
- ``objects``: pods and nodes as observations, with the devices that they hold
- ``pod_problems``: problems that keep a pod from running on its node
- ``replacements``: pods that their node refused, until their owner has made others
- ``node_checks``: problems in how nodes register with HAMi
- ``claims``: the devices that pods hold through resource claims
- ``scheduling_events``: Kubernetes events that are about a scheduling decision
- ``problem_events``: Kubernetes events about pods that can't start, and owners that can't make pods
- ``failure_messages`` (``grammar.toml``): texts of events and conditions about finding no node, parsed
- ``open_attempts``: which scheduling events form one attempt, and when it is complete
- ``node_verdicts``: the nodes that an attempt's events name or count
- ``events``: an attempt as schedulerlog's events
- ``line_attempts``: attempts of logs whose lines have the texts of events

Refused pods are judged on the cluster's objects, because events only count nodes:

    object ── judged_watches ── judged_fields ──▶ judged_objects ──▶ moment
    refusal, moment ── refusal_judge ──▶ verdicts ── judged_records ──▶ records of the attempt

- ``judged_kinds``: kinds of objects that the judge reads, and the rights for them
- ``judged_watches``: watches of these kinds; connects to the API server like ``watch``
- ``judged_fields``: objects reduced to the fields that the judge reads
- ``judged_objects``: the reduced objects, and the cluster at one moment
- ``refusal_judge``: judges a refusal at the moment at which it was read, equal pods once
- ``device_rows``: the devices of a refused node, of claims or of KAI's shares, in the form of the records
- ``judged_records``: a judged refusal as records of states, devices and nodes
- ``mismatches``: verdicts that keep differing from the scheduler's counts
"""

from ingest.readers.kube.reader import KubeEvents

__all__ = ["KubeEvents"]
