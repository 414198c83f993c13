"""Makes the Helm chart of deploy/helm from the manifests of deploy/kustomize: ``python -m deploy.helm_from_kustomize``.

=================  ===================================================================================
``manifests``      objects of deploy/kustomize, and what the patches of a component change (pure)
``branches``       values that depend on conditions, put together from patched variants (pure)
``text``           objects as the text of a template (pure)
``plan``           which value of the chart switches which component, and the templates that follow
``edits``          which place of an object which value fills
``values``         the values of the chart as models
``value_types``    forms of values that several models have, and the sections of the ways to the API from outside
``values_files``   ``values.yaml`` and ``values.schema.json``
``__main__``       writes the files
=================  ===================================================================================

Templates whose names begin with ``_``, and those of what kustomize does not have (Ingress, the test, the notes), are
kept by hand in deploy/helm/templates.
"""
