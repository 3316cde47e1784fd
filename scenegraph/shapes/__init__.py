"""Shapes: for now the box that bounds a volume."""

from ._box import Box as Box
