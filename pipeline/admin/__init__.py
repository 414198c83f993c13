"""Commands of an operator: provision topics and index templates, delete indices past their retention."""
