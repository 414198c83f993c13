"""Attempts: of a pod, its episodes, and what a device refused.

===================  ==========================================================================
``attempt_queries``  queries about attempts, and list items from their hits
``attempt_reader``   the latest attempt of a pod, retries with what they repeat, judged devices
``episodes``         attempts in a row with the same verdicts
``history``          reads the episodes of one pod
``device_refusals``  which attempts a device refused
===================  ==========================================================================
"""
