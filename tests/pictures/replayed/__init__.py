"""What hosts do in the pictures: recordings in the place of what talks to one host."""
