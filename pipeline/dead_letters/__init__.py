"""Dead letters: how a record that could not be processed is kept, and the commands that list and replay them."""
