"""``schedulerlog``, one command for every service and tool.

=================  =====================================================================================
``command``        the command line: which package has which commands, and which extra they need
``settings_page``  makes docs/settings.md and the list of known variables
=================  =====================================================================================
"""
