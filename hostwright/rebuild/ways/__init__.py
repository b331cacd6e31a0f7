"""Choice of the way to rebuild a host: the diagnosis, and the rules that decide."""
