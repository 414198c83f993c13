"""Files and folders of a process.

=================  =======================================================================
``scratch``        a folder of the process, while it runs
``state_files``    files that outlive a process: their folder, and mode 0600
``yaml_lines``     YAML as Kubernetes reads it, with the line of every key
=================  =======================================================================
"""
