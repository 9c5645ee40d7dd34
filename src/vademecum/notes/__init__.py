"""What is known about projects: notes that agents and people leave."""
