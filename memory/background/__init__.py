"""Runs work beside the event loop: long texts, bulk work, sweeps."""
