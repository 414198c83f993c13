"""HAMi's scheduler log (klog text, v2.4 to v2.11, -v=0 to 5) as events.

- ``reader``: the entry; finds the step for each line by its spelling
- ``grammar`` (``grammar.toml``): how each version spells each line
- ``filter_lines``: the steps for the lines of a filter call and its devices
- ``node_lines``: the steps for the lines about a node as a whole
- ``settings_lines``: the scheduler's version and flags, which it prints at its start
- ``values``: values that need more than their key to be read
- ``event_lines``: the steps for the event lines, which end filter calls and binds
- ``cause_lines``: the steps for lines that hold a cause without being a verdict
- ``bind_lines``: the steps for the lines of a bind, and for those printed at the start
- ``open_attempts``: attempts and binds that have not ended yet, within bounds
- ``memory``: the reader's memory between two lines
- ``container_requests``: the containers' requests
- ``attempt``: one attempt or bind, as far as its lines were read
- ``devices``: the node, model and size of each device, from the nodes' registrations
- ``tables``: an attempt's nodes, refusals, requests and rows of devices
- ``states``: the devices of an attempt's nodes, and what the log reports to be in use of them
- ``device_records``: the records of device rows, and the devices that were picked
- ``gaps``: parts of an attempt that the log does not report
- ``events``: an attempt as schedulerlog's events
"""
