"""Modules that programs of frameworks share. A program is sent to a host as one file, with these before it.

They run in the environment of the framework (Python 3.7 and newer, NumPy) and need nothing else. They are not imported
here.
"""
