"""Integrators string samplers, scene and compositing together."""

from ._base import AbstractIntegrator as AbstractIntegrator
from ._default import choose_integrator as choose_integrator, Nothing as Nothing
from ._held import Held as Held, hold as hold
from ._hierarchical import Hierarchical as Hierarchical
