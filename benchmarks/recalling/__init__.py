"""The parts of the recall benchmarks: data, passes through the memory, measures and tables."""
