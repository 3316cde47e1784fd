"""What surfaces and backgrounds look like."""

from ._base import AbstractShader as AbstractShader
from ._constant import Constant as Constant
