"""HAMi's admission webhook: AdmissionReview in, AdmissionReview out, around `engine.admission`. Pure."""
