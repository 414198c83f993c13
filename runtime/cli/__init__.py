"""Options, help and exit codes that all commands of the command line share.

===================  ==============================================================================
``cli``              command lines with plain help; one line on stderr for what the caller can mend
``lazy_commands``    groups of commands that import a command when it is called
``installation``     the version of this program, and the command that adds a package
===================  ==============================================================================
"""
