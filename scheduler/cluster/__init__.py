"""Where nodes and pods come from: what an API server must do for us, and a YAML file that does it."""
