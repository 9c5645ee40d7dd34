"""What an agent should know for a task: notes first, then the user, then the outside."""
