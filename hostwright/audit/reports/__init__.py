"""The formats of an audit: for a terminal, a spreadsheet, a build server, a monitoring system and a browser."""
