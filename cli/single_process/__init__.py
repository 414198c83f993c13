"""``schedulerlog all``: every service but the scheduler as the parts of one process, for clusters that need no more.

=============  ==========================================================================================
``command``    the command line: provisions, runs the parts, and says in one line what a person has to do
``settings``   the settings of all parts, each with its name and meaning
``parts``      the parts, from their settings
``readers``    the readers of the cluster and of schedulers' logs, as parts
``messenger``  messages to people, as a part that asks the API of the same process
=============  ==========================================================================================
"""
