"""The programs that prove JAX on a host: each is sent as one file, with the modules that it shares before it.

They run in the provisioned environment (JAX 0.4.30 and newer, NumPy) and need nothing else. They are not imported here.
"""
