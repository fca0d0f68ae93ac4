"""The command line: thin commands over the library. Internal: Python code calls the library."""
