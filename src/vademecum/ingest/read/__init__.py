"""Files and pages to documents: clean markdown with its title, whatever the source was."""

from vademecum.ingest.read.files import Found, Skipped, hash_file, scan
from vademecum.ingest.read.formats import FORMATS, read_bytes, read_file
from vademecum.ingest.read.web import DOCUMENT, Page, Validators, Wanted, fetch

__all__ = [
    "DOCUMENT",
    "FORMATS",
    "Found",
    "Page",
    "Skipped",
    "Validators",
    "Wanted",
    "fetch",
    "hash_file",
    "read_bytes",
    "read_file",
    "scan",
]
