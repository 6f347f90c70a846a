"""HTTP and the command line: translates, never decides."""
