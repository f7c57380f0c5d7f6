"""Which tensors a model is made of, in the names of its published checkpoint: one file a family.

Every function yields `Tensor`s from an architecture's constants; nothing is read or stored.
"""
