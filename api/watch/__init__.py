"""Watches: the changes of attempts as they happen, as Kubernetes' lines of JSON or as Server-Sent Events.

The attempts consumer writes the log of changes (``api.memory.change_log``); each watch reads it from its own position.

=============  ==========================================================================
views          objects of a watch, and its events as lines or as Server-Sent Events; pure
shared_events  bytes of the latest events, made once for all watches
events         events of one watch, from its position in the log until its end
streams        streaming responses of watches, with limits per caller
=============  ==========================================================================
"""
