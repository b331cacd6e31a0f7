"""Verbs that a site defines. The site's files are imported to run a verb, and only parsed for help and completion."""
