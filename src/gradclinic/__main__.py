"""`python -m gradclinic`, which is also what torchrun launches."""

from gradclinic.cli import entry

if __name__ == "__main__":
    entry()
