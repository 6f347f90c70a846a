"""The parts of the benchmark of several processes: what runs, what is said, and what is looked for afterwards."""
