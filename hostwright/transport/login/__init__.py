"""Login: authentication with keys and passwords, caches of the files used, and output of login shells."""
