"""A site's own verbs: run where they are called, and read as text where only their names are wanted."""
