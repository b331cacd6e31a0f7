"""Verbs of a site: imported before one runs, and only parsed for help and completion."""
