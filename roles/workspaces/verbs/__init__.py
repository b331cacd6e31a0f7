"""Implementation of the workspace tasks: inventory changes and queries."""
