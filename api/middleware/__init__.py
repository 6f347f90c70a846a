"""Guards and observes every request before and after its route."""
