"""Verbs that a site defines: imported to run one, and only parsed for help and completion."""
