"""Modules that render a recorded run as one self-contained HTML page."""
