"""Programs that run on a host, in the Python of an environment there.

Each is sent as one file and is never imported.
"""
