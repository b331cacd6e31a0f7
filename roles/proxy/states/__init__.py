"""States of the proxy: certificate, reload and access tokens."""
