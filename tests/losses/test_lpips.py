"""LPIPS: against its authors' package, with weights made up on the spot."""

import sys

import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.io import FileError, import_extra, MissingExtra
from scenegraph.losses import load_lpips


def package():
    try:
        return import_extra("lpips", "lpips", "LPIPS"), import_extra("torch", "lpips", "LPIPS")
    except MissingExtra as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """The package's own network over made-up weights, and a file of them as torchvision's is."""
    lpips, torch = package()
    torch.manual_seed(0)
    with pytest.warns(UserWarning):
        network = lpips.LPIPS(net="vgg", pnet_rand=True, verbose=False)
    weights = {"features." + k.split(".", 1)[1]: v for k, v in network.net.state_dict().items()}
    path = tmp_path_factory.mktemp("weights") / "vgg16.pth"
    torch.save(weights | {"classifier.0.bias": torch.zeros(3)}, path)
    return network, path


@pytest.fixture(scope="module")
def measure(reference):
    return load_lpips(reference[1])


@pytest.fixture(scope="module")
def pictures():
    return [jnp.asarray(np.random.default_rng(n).uniform(size=(24, 40, 3))) for n in (0, 1)]


def test_what_the_package_says(reference, measure, pictures):
    network, torch = reference[0], package()[1]
    tensors = [torch.tensor(np.array(x)).permute(2, 0, 1)[None].float() for x in pictures]
    expected = network(*[2 * x - 1 for x in tensors]).item()
    assert measure(*pictures) == pytest.approx(expected, rel=1e-5)
    assert expected > 0.01


def test_equal_pictures_and_the_other_way_round(measure, pictures):
    one, other = pictures
    assert measure(one, one) == 0
    assert measure(one, other) == pytest.approx(measure(other, one), rel=1e-6)


def test_pictures_too_small_for_the_network(measure):
    with pytest.raises(ValueError, match="16x16 pixels; got 40x15"):
        measure(jnp.zeros((15, 40, 3)), jnp.zeros((15, 40, 3)))


def test_file_by_the_environment(reference, measure, pictures, monkeypatch):
    monkeypatch.setenv("SCENEGRAPH_LPIPS_WEIGHTS", str(reference[1]))
    assert load_lpips()(*pictures) == measure(*pictures)


def test_file_where_torch_keeps_such_files(reference, measure, pictures, monkeypatch, tmp_path):
    monkeypatch.delenv("SCENEGRAPH_LPIPS_WEIGHTS", raising=False)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    (tmp_path / "hub" / "checkpoints").mkdir(parents=True)
    (tmp_path / "hub" / "checkpoints" / "vgg16-397923af.pth").symlink_to(reference[1])
    assert load_lpips()(*pictures) == measure(*pictures)


def test_nothing_is_downloaded(monkeypatch, tmp_path):
    package()
    monkeypatch.delenv("SCENEGRAPH_LPIPS_WEIGHTS", raising=False)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    with pytest.raises(FileError, match="never downloaded, and there is no file .*vgg16-397923af"):
        load_lpips()
    assert not list(tmp_path.rglob("*.pth"))


@pytest.mark.parametrize("content", [b"", b"not weights", b"\x80\x04\x95rest"])
def test_file_of_something_else(tmp_path, content):
    package()
    (tmp_path / "file.pth").write_bytes(content)
    with pytest.raises(FileError, match="file.pth does not hold the weights"):
        load_lpips(tmp_path / "file.pth")


def test_weights_of_another_network(tmp_path):
    _, torch = package()
    torch.save({"features.0.weight": torch.zeros(64, 3, 11, 11)}, tmp_path / "alex.pth")
    with pytest.raises(FileError, match="alex.pth does not hold the weights of torchvision's VGG"):
        load_lpips(tmp_path / "alex.pth")


def test_without_the_package_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "lpips", None)
    with pytest.raises(MissingExtra, match=r"LPIPS needs `pip install scenegraph\[lpips\]`"):
        load_lpips()
