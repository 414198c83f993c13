"""The JSON that the API answers with."""
