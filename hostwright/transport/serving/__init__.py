"""HTTP server on this machine for files that hosts fetch while they are installed: configuration for the installer, and
files of the stack.
"""
