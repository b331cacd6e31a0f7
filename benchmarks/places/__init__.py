"""Where hosts are: the lab's, those behind a long line, and a thousand that replay recorded answers."""
