"""The order of the roles of one host, and their waits for each other."""
