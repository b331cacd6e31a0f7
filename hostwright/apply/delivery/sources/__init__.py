"""The sources from which hosts fetch files: this machine, and other hosts of the run that already have the files."""
