"""HTTP without a subject: request checks, parameters, pagination, errors and the page of the OpenAPI document."""
