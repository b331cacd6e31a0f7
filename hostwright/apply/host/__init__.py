"""One host through its plan."""
