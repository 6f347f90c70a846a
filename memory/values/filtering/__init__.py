"""Filter keys that are declared, the terms that index an item for filters, and what a filter means in terms."""
