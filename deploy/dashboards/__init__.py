"""Dashboards and rules, made from code: saved objects of OpenSearch Dashboards, dashboards of Grafana, rules of SLOs.

Imports ``process`` and ``schemas`` alone, and no client: ``install`` speaks HTTP with the standard library.

===================  ===============================================================================
``saved_objects``    one saved object, its references, its line of NDJSON
``index_patterns``   an index pattern of every index family, with links to the API
``searches``         saved searches: waiting pods, bind failures, findings, one pod's history
``panels``           the parts of a visualization
``visualizations``   the visualizations
``overview``         the dashboard that puts them together, and all objects as a file
``importing``        imports the objects and reads each of them back
``settings``         where Dashboards and the API are
``slo``              objectives, and their recording and burn-rate rules
===================  ===============================================================================
"""
