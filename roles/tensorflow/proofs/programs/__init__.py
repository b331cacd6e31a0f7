"""The programs that prove TensorFlow on a host: each is sent as one file, with the modules that it shares before it.

They run in the provisioned environment (TensorFlow 2.9, Python 3.7 to 3.10, NumPy) and need nothing else. They are not
imported here.
"""
