"""Files and pages to documents: clean markdown with its title, whatever the source was."""

from vademecum.ingest.read.files import Found, Skipped, hash_file, scan
from vademecum.ingest.read.formats import FORMATS, read_bytes, read_file
from vademecum.ingest.read.web import Page, Validators, fetch

__all__ = [
    "FORMATS",
    "Found",
    "Page",
    "Skipped",
    "Validators",
    "fetch",
    "hash_file",
    "read_bytes",
    "read_file",
    "scan",
]
