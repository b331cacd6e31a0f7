"""Login: authentication with keys and passwords, a cache of parsed files, and detection of start files that print."""
