"""Vademecum: the knowledge and memory that AI agents carry."""
