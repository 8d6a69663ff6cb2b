"""What `run` shows in a terminal while a script trains, beside what the script prints itself."""
