"""HAMi's admission webhook: AdmissionReview in, AdmissionReview out, around `engine.admission`. Pure.

review  one review: the pod in it, the admission, and the patch that is the answer
"""
