"""Dashboards and rules, made from code: saved objects of OpenSearch Dashboards, dashboards of Grafana, rules of SLOs.

Imports only ``runtime`` and ``schemas``, and no client: ``install`` speaks HTTP with the standard library.

===================  ===============================================================================
``saved_objects``    saved object, its references, its line of NDJSON
``index_patterns``   index pattern of every index family, with links to the API
``searches``         saved searches: waiting pods, bind failures, findings, one pod's history
``panels``           parts of a visualization
``visualizations``   all visualizations
``overview``         dashboard of the searches and visualizations, and all objects as a file
``importing``        import of the objects, which reads each of them back
``slo``              objectives, and their recording and burn-rate rules
===================  ===============================================================================
"""
