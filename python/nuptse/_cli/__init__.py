"""The command line: one file for every subject. `nuptse.__main__` starts it."""
