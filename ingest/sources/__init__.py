"""Where lines come from: files and archives, files that grow, standard input, the API server's log of a pod."""
