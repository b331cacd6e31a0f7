"""Installed software on hosts by layer, also software installed by hand; groups of equal hosts; stacks drafted from
them.
"""
