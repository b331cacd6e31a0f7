"""An audit for its readers: a terminal, a spreadsheet, a build server, a monitoring system, a browser."""
