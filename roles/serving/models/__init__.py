"""A model on the controller: a directory that TensorFlow saved, checked, and packed for hosts."""
