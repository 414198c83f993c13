"""The JSON that the API returns: ``attempts`` about attempts of pods, ``waiting`` about those that
wait, ``placements`` about pods on nodes, ``clusters`` about whole clusters."""
