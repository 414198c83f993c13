"""The JSON that the API returns: ``attempts`` about attempts of pods, ``placements`` about pods on nodes,
``clusters`` about whole clusters."""
