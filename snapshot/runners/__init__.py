"""What produces observations. Only these rooms import torch, transformers or peft."""
