"""Says what became of imports that go on behind their answer."""
