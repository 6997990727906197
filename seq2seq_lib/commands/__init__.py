"""The commands of the program that train, score and pack models."""
