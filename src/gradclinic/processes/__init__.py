"""A command of many processes: how each is reached, what each leaves behind, how that is put together.

Nothing here imports torch: the process that starts a command and diagnoses it may not have it.
"""
