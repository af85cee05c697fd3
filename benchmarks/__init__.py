"""Speed, as ratios to the raw driver in the same run: ``python -m benchmarks --help``."""
