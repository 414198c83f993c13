"""Watches: the changes of attempts as they happen, as Kubernetes' lines of JSON or as Server-Sent Events.

The attempts consumer writes the log of changes (``api.memory.change_log``); a watch reads it from its own place on.

========  ==========================================================================
views     pure: what a watch of a pod, of attempts or of pending pods shows of a change
shown     the bytes of the latest changes, made once for all who watch
framing   pure: events, bookmarks and errors as lines or as Server-Sent Events
events    the events of one watch, from its place in the log until it ends
streams   the answer that sends them; how many there are, and of whom
========  ==========================================================================
"""
