"""What the latency benchmark compares: each engine builds and searches in a process of its own."""
