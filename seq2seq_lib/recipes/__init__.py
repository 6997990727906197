"""Recipes: small TOML files that say how a model is trained, from data to search."""

from seq2seq_lib.recipes.recipe import Recipe, load_recipe, recipe_names

__all__ = ["Recipe", "load_recipe", "recipe_names"]
