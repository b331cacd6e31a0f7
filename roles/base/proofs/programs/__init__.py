"""The programs that prove a host itself and are Python: each is sent as one file, for the Python 3.6 or newer of hosts.

They are not imported here.
"""
