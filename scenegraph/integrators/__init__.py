"""Integrators string samplers, scene and compositing together."""

from ._base import AbstractIntegrator as AbstractIntegrator
from ._default import Nothing as Nothing
from ._default import choose_integrator as choose_integrator
from ._hierarchical import Hierarchical as Hierarchical
