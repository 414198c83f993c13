"""The admission webhook: what pods are given before they are scheduled, and which are refused at once.

`review` reads and writes AdmissionReviews, `admit` decides, `mutate` changes containers; all of it is pure.
"""
