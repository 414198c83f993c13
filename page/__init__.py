"""Web page: from answers and view models to HTML. Pure: no server, no index, no clock.

=============  =====================================================================================
render         a template with its view, as bytes
page_context   context of every page: language, address, cluster; links that keep both
colours        the colour of each reason, the same everywhere
texts          the texts in English and Chinese, from ``texts.toml``
formats        formats of times, durations, amounts and names
heat_maps      tiles and cells for all nodes of an attempt, and for the devices of some nodes
device_fills   cells for the devices of a fleet, filled as far as pods hold them
timelines      bars over time: pods on each device, and a pod's episodes
plots          bars over time with series, and bars side by side
time_axis      ticks at round times below a drawing
report_file    the report of failures as a page of its own, Markdown or CSV
log_file       the pods of a scheduler's log as a page of its own
pod_manifest   the manifest of a pod, from the requests of an attempt
views          view models of page and terminal
patches        commands and manifests that carry a suggested change out
commands       command lines that give the page's answer: curl, kubectl, terminal
=============  =====================================================================================

``templates/`` and ``static/`` have no address of another host in them, and no script or style inside the HTML.
"""
