"""Models on the controller: directories that TensorFlow saved, checked and packed for hosts."""
