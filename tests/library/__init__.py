"""Tests of the memory used as a library."""
