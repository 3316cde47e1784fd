import pytest

import scenegraph as sg
from support import mesh_stand_in


@pytest.fixture(autouse=True)
def meshes(monkeypatch):
    """Stands in for what the library does not have yet."""
    if "TriangleMesh" not in vars(sg.shapes):
        monkeypatch.setattr(
            sg.shapes, "TriangleMesh", mesh_stand_in.TriangleMesh, raising=False
        )
        monkeypatch.setattr(sg.shaders, "VertexColor", mesh_stand_in.VertexColor, raising=False)
