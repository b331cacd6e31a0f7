"""A site's own verbs: imported to run them, or only parsed for help and completion."""
