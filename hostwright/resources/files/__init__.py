"""States of files, directories, links and archives."""
