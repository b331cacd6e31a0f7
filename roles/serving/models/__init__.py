"""Model on the controller: a directory saved by TensorFlow, checked and packed for hosts."""
