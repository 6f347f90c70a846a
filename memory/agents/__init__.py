"""The library's agents: the memory of one thread, in this process or behind a service's address, awaited or not."""
