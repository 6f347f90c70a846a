"""Holds what a filter means, the keys declared for filters, and the terms by which an index narrows one down."""
