"""Modules that render an audit as one self-contained HTML page."""
