"""Settings of the embedded server that fit the machine it is on."""

import os
import sys
from pathlib import Path


def settings_here() -> dict[str, str | int]:
    return machine_settings(_memory(), _cores(), _shared_memory())


def machine_settings(memory: int, cores: int, shared_memory: int) -> dict[str, str | int]:
    """Settings that fit this machine. Memory in MB, `shared_memory` is what /dev/shm has free."""
    # A million chunks want some 2 GB to build their HNSW in; of less memory pgvector warns.
    maintenance = max(64, min(4096, memory // 8))
    parallel = max(1, min(4, cores))
    return {
        "max_connections": 50,
        # Memory is taken as it is needed: a large collection's vectors and postings stay in it.
        "shared_buffers": f"{max(32, min(4096, memory // 8))}MB",
        "effective_cache_size": f"{max(64, memory // 2)}MB",
        "work_mem": f"{max(4, min(64, memory // 256))}MB",
        # An HNSW index builds many times faster while it fits; autovacuum needs no such thing.
        "maintenance_work_mem": f"{maintenance}MB",
        "autovacuum_work_mem": "64MB",
        "max_worker_processes": 8,
        "max_parallel_workers": max(2, parallel),
        "max_parallel_maintenance_workers": parallel,
        # A parallel HNSW build shares maintenance_work_mem; a container's /dev/shm has 64 MB.
        "dynamic_shared_memory_type": "posix" if shared_memory > maintenance + 128 else "mmap",
        "jit": "off",
        "random_page_cost": "1.1",
        "synchronous_commit": "on",
        # Nothing replicates from here, which lets bulk loads skip the log.
        "wal_level": "minimal",
        "max_wal_senders": 0,
        "max_logical_replication_workers": 0,
        "wal_compression": "on",
        "max_wal_size": "1GB",
        "min_wal_size": "64MB",
        "checkpoint_timeout": "15min",
        # Recovery starts with that: on a busy disk 0.4 s instead of 3.7 file by file.
        "recovery_init_sync_method": "syncfs" if sys.platform == "linux" else "fsync",
        "timezone": "UTC",
        "logging_collector": "off",
        "log_destination": "stderr",
        "log_checkpoints": "off",
        "log_line_prefix": "%m [%p] ",
        # Statements hold what people wrote; the log is no place for it.
        "log_min_error_statement": "fatal",
    }


def _memory() -> int:
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            text = Path("/sys/fs/cgroup", limit).read_text().strip()
        except OSError:
            continue
        if text.isdecimal():
            found = min(found, int(text))
    return found // 1024**2


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _shared_memory() -> int:
    if sys.platform != "linux":
        return sys.maxsize
    try:
        free = os.statvfs("/dev/shm")  # noqa: S108
    except OSError:
        return 0
    return free.f_bavail * free.f_frsize // 1024**2
