"""One host through its rebuild."""
