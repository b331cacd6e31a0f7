"""Which way a host is rebuilt: what is known of it, and the rules that decide."""
