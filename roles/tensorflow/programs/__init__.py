"""Programs for the Python of TensorFlow's environment on a host: each is sent as one file, and none is imported."""
