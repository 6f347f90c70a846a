"""Holds what a filter means, the keys that are declared for filters, and the terms by which an index narrows one down."""
