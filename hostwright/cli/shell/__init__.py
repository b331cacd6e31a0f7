"""Front end of all verbs: parsing of the command line, messages about its mistakes, help, completion, unexpected
errors."""
