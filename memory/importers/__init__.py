"""Sources of an import that are files; those that are databases are in `memory/stores/`."""
