"""Vademecum: the knowledge and memory that AI agents carry."""

__version__ = "0.1.0"
