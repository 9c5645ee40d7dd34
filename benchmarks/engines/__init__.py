"""The engines that the latency benchmark compares, each built and asked in a process of its own.

    python -m engines build|search ENGINE FOLDER

FOLDER is a handover, and what an engine builds it keeps in there.
"""
