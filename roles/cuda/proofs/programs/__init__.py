"""What the programs of frameworks share, which are sent to a host as one file each, with these before them.

They run in the environment of the framework (Python 3.7 and newer, NumPy) and need nothing else. They are not imported
here.
"""
