"""``schedulerlog``, one command for every service and tool.

==================  =====================================================================================
``command``         the command line: which package has which commands, and which extra they need
``single_process``  every service but the scheduler as one process (`schedulerlog all`)
``terminal``        questions at a terminal: why, list, history, nodes, explain, simulate
``client``          requests to the API, by kubectl or a URL
``direct``          answers from a live cluster itself, where it has no API
``assistant``       the same answers as tools of an assistant (MCP)
``doctor``          checks of an installation, each with its remedy
``settings_page``   writes the tables of docs/settings*.md and the list of known variables
==================  =====================================================================================
"""
