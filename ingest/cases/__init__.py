"""Cases: what people have in files about a cluster, and answers about the pods in them, without any server.

read_case     reads files, folders and archives of objects and logs into one case
case_files    lists the files of folders, and unpacks archives of objects
object_texts  recognises and parses texts of Kubernetes objects: YAML, JSON
descriptions  reads what kubectl describes for people back into objects
description_sections  reads the sections of a description: its fields, and its containers
described_kinds  reads descriptions of controllers and claims back into objects
described_objects  reads descriptions of any other kind back into their fields
pasted_texts  reads what people paste into a question: parts of descriptions, tables and logs between prose
pasted_rows   reads a single event of such a text: a row of a table, or the words of one
autoscaler_log  reads the lines of a cluster autoscaler's log, and completes them from each other
stopped_queues  lists queues of Kueue of which only the condition was pasted
plugin_log    lists the pods in the log of a device plugin of HAMi
stated_names  finds the pod that an author names in prose, or the only one that waits in a table
stated_sentences  reads the words of an event that stand in prose, and leaves prose that only speaks of one
unnamed_pods  names the pods of rows and sentences that do not name them, and separates several
joined_pods   gives events of one file that name no pod the only pod of the others
pasted_objects  reads YAML and JSON between the sentences of such a text
shortened_pods  completes pods that people wrote or shortened by hand
pasted_fragments  reads descriptions and statuses that lack the name of what they show
wrapped_lines  joins lines that a terminal or a mail program broke
event_subjects  builds the objects that events are about, as far as the events tell
reported_conditions  reads words about pods in the conditions of other objects
kubectl_tables  reads tables of kubectl get: pods that do not run, sets of daemons, claims, Jobs, Workloads
foreign_texts texts that are neither, and what to give instead
read_log      reads a log of any known scheduler to its end
log_pods      collects every pod with its latest attempts, from a reader's events
saved_attempts  attempts of a pod in a scheduler's log, and their form in a saved case
answers       answers about each pod: its diagnosis, or the schedulerlog that the API would give
workload_answers  answers about workloads, with the attempts of their pods
"""
