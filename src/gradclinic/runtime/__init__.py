"""Watches a program train and writes down what it did; needs torch."""

from gradclinic.runtime.recorder import StopTraining
from gradclinic.runtime.recording import Recording

__all__ = ["Recording", "StopTraining"]
