"""Documents and vector indexes, embedded and on servers."""
