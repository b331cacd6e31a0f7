"""Login: authentication, a cache of parsed files, and detection of shell startup files that print."""
