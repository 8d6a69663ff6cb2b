"""Callbacks for training frameworks; importing one needs the framework, importing this does not."""
