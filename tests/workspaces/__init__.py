"""Workspaces as people use them, with real TensorFlow and Jupyter in a real browser; opt-in (`make workspaces`)."""
