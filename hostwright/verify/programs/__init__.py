"""Programs that run on a host, in the Python of an environment on the host.

Each program is sent as one file and is never imported.
"""
