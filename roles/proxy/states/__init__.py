"""States of the proxy: certificate, reload and tokens."""
