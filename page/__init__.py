"""Renders the web page: from answers and view models to HTML. Pure: no server, no index, no clock.

=============  =====================================================================================
render         a template with its view, as bytes
page_context   what every page knows: language, address, cluster; links that keep both
texts          the texts in English and Chinese, from ``texts.toml``
formats        how times, durations, amounts and names are written
node_map       the heat map of all nodes, a tile per node
device_map     the devices of some nodes, with their numbers
episode_strip  a pod's episodes as bars on one line of time
plots          bars over time, and bars side by side
report_file    the report of failures as a page of its own, Markdown or CSV
log_file       the pods of a scheduler's log as a page of its own
pod_manifest   the manifest of a pod, from what an attempt of it asked for
gantt          who held which device over time: bars on a line per device
views          view models of page and terminal
commands       the same answer as a command line: curl, kubectl
=============  =====================================================================================

``templates/`` and ``static/`` have no address of another host in them, and no script or style inside the HTML.
"""
