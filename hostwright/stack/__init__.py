"""Stacks: reads stack files, checks compatibility rules, and mirrors the files that stacks contain."""
