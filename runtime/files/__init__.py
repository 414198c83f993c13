"""Files and folders of a process.

=================  =======================================================================
``private_files``  files that a process writes for itself: mode 0600, never through a link
``scratch``        a folder of the process, while it runs
``state_folder``   the folder of what has to outlive a process
``yaml_lines``     YAML as Kubernetes reads it, with the line of every key
=================  =======================================================================
"""
