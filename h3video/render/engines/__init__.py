"""The programs that run a model for us, one file each."""
