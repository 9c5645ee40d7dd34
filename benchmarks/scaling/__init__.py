"""The parts of the benchmark of growth, benchmarks/scale.py."""
