"""Other stores that follow the graph, one way; each can be dropped and rebuilt."""
