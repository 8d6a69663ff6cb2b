"""gradclinic tells a PyTorch user why a training run does not learn, blows up, or changes when compiled."""

__version__ = "0.1.0"
