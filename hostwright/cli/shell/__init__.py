"""What stands before every verb: words and their mistakes, help, completion, and what nobody foresaw."""
