"""What hosts fetch from this machine over HTTP while something works on them: their seeds, the files of their stack."""
