"""The programs that prove PyTorch on a host: each is sent as one file, with the modules that it shares before it.

They run in the provisioned environment (PyTorch 2.4 and newer, NumPy) and need nothing else. They are not imported
here.
"""
