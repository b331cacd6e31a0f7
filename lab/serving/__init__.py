"""A stand-in for TensorFlow's model server: its flags, configuration and REST answers, with real TensorFlow behind.

No image `tensorflow/serving` can be had here. What is served is computed by TensorFlow 2.9.0 itself; how versions are
loaded, labelled, switched and unloaded, and what is answered, follows the sources of TensorFlow Serving. It has no
gRPC, no classify and regress, no batching and no metrics. It is in the container image, whose Python is 3.9, and
imports nothing of this project.
"""
