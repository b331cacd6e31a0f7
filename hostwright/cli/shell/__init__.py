"""The front end of all verbs: words and their mistakes, help, completion, and unexpected errors."""
