"""Numbers about a golden and an observation; what they mean is decided in `snapshot.verdict`."""
