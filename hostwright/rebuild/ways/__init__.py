"""Choice of the way to rebuild a host (``rebuild.Way``): the diagnosis, and the rules that decide."""
