"""Covers a period, or a subject over time, in place of giving the few best hits."""
