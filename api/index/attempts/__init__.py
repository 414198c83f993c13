"""Attempts of a pod, its episodes, and refusals by a device.

===================  =================================================================================
``attempt_queries``  queries about attempts, and list items from their hits
``attempt_reader``   latest attempt of a pod, retries with the attempts that they repeat, judged devices
``episodes``         attempts in a row with the same verdicts
``history``          reader of the episodes of one pod
``device_refusals``  attempts that a device refused
===================  =================================================================================
"""
