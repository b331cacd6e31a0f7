"""The output formats of an audit: terminal, CSV, JUnit XML, Prometheus metrics, JSON and HTML."""
