"""Files of ours in three.js: the same silhouette, in a headless browser."""

import base64
import functools
import http.server
import os
import pathlib
import re
import shutil
import subprocess
import threading

import numpy as np
import pytest

import scenegraph as sg


SIZE = 96
FOLDER = os.environ.get("THREE_JS")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not CHROMIUM or not FOLDER or not (pathlib.Path(FOLDER) / "node_modules/three").is_dir(),
        reason="needs chromium, and THREE_JS: a folder with the npm package three",
    ),
]

# The opacities of the picture that the file's own camera sees, row by row from below, as base64.
PAGE = """<!doctype html><body>
<script type="importmap">
{"imports": {"three": "/node_modules/three/build/three.module.js"}}
</script>
<script type="module">
import * as THREE from "three";
import { GLTFLoader } from "/node_modules/three/examples/jsm/loaders/GLTFLoader.js";
const show = text => { document.body.innerHTML = "<pre>" + text + "</pre>"; };
try {
  const file = await new GLTFLoader().loadAsync("/scene.glb");
  const renderer = new THREE.WebGLRenderer({ alpha: true, preserveDrawingBuffer: true });
  renderer.setPixelRatio(1);
  renderer.setSize(SIZE, SIZE, false);
  renderer.setClearColor(0, 0);
  renderer.render(file.scene, file.cameras[0]);
  const gl = renderer.getContext(), pixels = new Uint8Array(4 * SIZE * SIZE);
  gl.readPixels(0, 0, SIZE, SIZE, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
  show("alpha:" + btoa(String.fromCharCode(...pixels.filter((x, i) => i % 4 == 3))) + ":end");
} catch (error) { show("error:" + error); }
</script></body>"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server of files that writes no log."""

    def log_message(self, format, *arguments):
        del format, arguments


def opacities_in_three(folder: pathlib.Path) -> np.ndarray:
    """What three.js draws of `scene.glb`: 1 where something is, 0 elsewhere."""
    (folder / "page.html").write_text(PAGE.replace("SIZE", str(SIZE)))
    (folder / "node_modules").symlink_to(pathlib.Path(FOLDER or "") / "node_modules")
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        flags = ["--headless", "--no-sandbox", "--use-angle=swiftshader", "--disable-dev-shm-usage"]
        flags += ["--enable-unsafe-swiftshader", f"--user-data-dir={folder / 'profile'}"]
        flags += ["--virtual-time-budget=60000", "--dump-dom"]
        address = f"http://127.0.0.1:{server.server_port}/page.html"
        command = [CHROMIUM or "", *flags, address]
        run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        server.shutdown()
    found = re.search("alpha:([^:]*):end", run.stdout)
    assert found, run.stdout[-1000:] + run.stderr[-1000:]
    rows = np.frombuffer(base64.b64decode(found[1]), np.uint8).reshape(SIZE, SIZE)
    return rows[::-1] / 255


def scene() -> sg.Scene:
    """Shapes under transforms, one of them mirrored, a mesh, and a card with holes."""
    holes = (np.indices((8, 8)).sum(axis=0) % 2).astype(np.float32)[..., None]
    red, turn = [0.8, 0.2, 0.1], sg.Similarity([0.4, -0.3, 0.2], [0.9, 0.1, 0.3, 0.2], 0.7)
    corners = [[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    spike = sg.TriangleMesh(corners, [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], smooth=False)
    card = sg.TriangleMesh(
        [[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]],
        [[0, 1, 2], [0, 2, 3]],
        uv=[[0.0, 0], [1, 0], [1, 1], [0, 1]],
        smooth=False,
    )
    mask = sg.ImageTexture(holes, corner=[0.0, 0.0])
    squeeze = sg.Affine(np.diag([1.0, -0.5, 1.5]), [-0.6, 0.5, 0.4])
    look = sg.PerspectiveCamera.look_at
    return sg.Scene(
        sg.Group(
            ball=sg.Transformed(sg.Surface(sg.Sphere([0.0, 0, 0], 0.5), red), turn),
            box=sg.Transformed(sg.Surface(sg.Box([-0.4] * 3, [0.4] * 3), red), squeeze),
            spike=sg.Surface(spike, red),
            card=sg.Surface(card, red, mask),
            eye=look([2.0, -3.0, 2.5], [0.0, 0, 0.2], [0.0, 0, 1], 0.8, SIZE, SIZE),
        )
    )


def test_silhouettes_are_the_same(tmp_path):
    sg.save_glb(scene(), tmp_path / "scene.glb")
    theirs = opacities_in_three(tmp_path)
    ours = np.asarray(sg.render(sg.load_scene(tmp_path / "scene.glb"), "eye").alpha)
    assert 0.1 < theirs.mean() < 0.9
    # A hard picture has a pixel if something is in its middle: only outlines are a matter of taste.
    inside, outside = ours > 0.98, ours < 0.02
    assert np.mean(inside | outside) > 0.6
    assert np.all(theirs[inside] == 1) and np.all(theirs[outside] == 0)
    assert abs(theirs.mean() - ours.mean()) < 0.01
