"""Knowledge that knows the code: documents, APIs, code, and how they relate."""
