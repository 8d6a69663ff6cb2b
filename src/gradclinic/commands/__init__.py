"""One module per command: its docstring is the help text, `add_arguments` and `run` the rest."""
