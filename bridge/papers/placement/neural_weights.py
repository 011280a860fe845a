# SPDX-License-Identifier: Apache-2.0
"""The six networks that choose where a job is placed (table II), and files of their weights.

A network reads a state of 4 rows of Q numbers (see `STATE` below) and returns Q numbers, one for
each node at which the job could begin; softmax over the existing nodes makes them probabilities.

STATE
    0   the switch of each node, numbered from 0 in the order of the view, / NUMBERS
    1   the switch above it (the pod), likewise
    2   nodes of the job, / the largest job
    3   mean number of nodes of the jobs still to be placed, / the largest job

Deviates: the paper divides identifiers by the highest one, so that neighbouring switches of a
large cluster hardly differ; ours do not depend on the size of the tree. Table II's
parameter counts of the FCNs are those of five rows (its program also feeds whether a node is idle,
which it always is); with the four of its text they are fewer. Those of the CNNs fit neither.

A file is an .npz: `network` (its name) and arrays `0`, `1`, ...: weights and biases by turns, from
the first layer on, float32. Convolutions are (out, in, width), linear layers (out, in).
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge import files, npz
from bridge.core import RepairNetwork
from bridge.errors import ConfigError

Q: Final = 100
"""Nodes that a network sees."""
CHANNELS: Final = 4
NUMBERS: Final = 5.0
"""Divisor of the numbers of switches."""
LARGEST: Final = 40
"""Nodes of the largest job that the networks were trained with."""
MAX_BYTES: Final = 16 << 20
"""Maximum size of all arrays of a file, unpacked."""
SHIPPED: Final = Path(__file__).parent / "weights"

Weights = list[NDArray[np.float32]]


@dataclass(frozen=True)
class NetworkShape:
    """A network of table II.

    Attributes:
        convolutions: (channels, width, stride) each; tanh between them.
        hidden: width of each linear layer but the last.
        bent: whether there is a tanh between linear layers. The CNNs of the table have none.
    """

    convolutions: tuple[tuple[int, int, int], ...]
    hidden: tuple[int, ...]
    bent: bool

    def layers(self) -> list[tuple[int, ...]]:
        """Shapes of the weights, from the first layer on; a bias is as long as the first number."""
        shapes: list[tuple[int, ...]] = []
        channels, length = CHANNELS, Q
        for out, width, stride in self.convolutions:
            shapes.append((out, channels, width))
            channels, length = out, (length - width) // stride + 1
        inputs = channels * length
        for out in (*self.hidden, Q):
            shapes.append((out, inputs))
            inputs = out
        return shapes

    def parameters(self) -> int:
        """Number of trainable parameters of the actor."""
        return sum(int(np.prod(shape)) + shape[0] for shape in self.layers())


NETWORKS: Final = {
    "fcn-1": NetworkShape((), (64, 64), True),
    "fcn-2": NetworkShape((), (64, 64, 64), True),
    "fcn-3": NetworkShape((), (96, 64), True),
    "cnn-1": NetworkShape(((4, 10, 1), (4, 5, 2)), (256,), False),
    "cnn-2": NetworkShape(((8, 10, 1), (4, 5, 2)), (256,), False),
    "cnn-3": NetworkShape(((16, 10, 1), (8, 5, 2)), (256,), False),
}


def write_weights(path: Path, network: str, weights: Weights) -> None:
    """Writes a file of weights.

    Args:
        weights: weights and biases by turns.
    """
    arrays = {str(i): np.asarray(array, dtype=np.float32) for i, array in enumerate(weights)}
    with path.open("wb") as file:
        np.savez_compressed(file, network=np.array(network), **arrays)  # type: ignore[arg-type]


def read_weights(path: Path) -> tuple[str, Weights]:
    """Reads a file of weights.

    Returns:
        The network's name, and weights and biases by turns.

    Raises:
        ConfigError: it cannot be read, or does not hold one of the networks.
    """
    try:
        arrays = npz.read(files.read_bytes(path, MAX_BYTES), MAX_BYTES)
    except npz.UNREADABLE as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError("weights", f"{path}: no file of weights: {why}") from None
    network = str(arrays.pop("network", ""))
    if network not in NETWORKS:
        known = ", ".join(NETWORKS)
        raise ConfigError("weights", f"{path}: holds no network of these: {known}")
    shapes = [each for layer in NETWORKS[network].layers() for each in (layer, layer[:1])]
    weights: Weights = []
    for i, shape in enumerate(shapes):
        array = arrays.pop(str(i), None)
        if array is None or array.shape != shape or array.dtype != np.float32:
            raise ConfigError("weights", f"{path}: array {i} is not float32 of shape {shape}")
        if not np.isfinite(array).all():
            raise ConfigError("weights", f"{path}: array {i} holds numbers that are not finite")
        weights.append(array)
    if arrays:
        raise ConfigError("weights", f"{path}: holds arrays that {network} does not use")
    return network, weights


def folded(network: str, weights: Weights) -> Weights:
    """The same function in fewer steps: merges consecutive linear layers."""
    shape = NETWORKS[network]
    if shape.bent:
        return weights
    first = 2 * len(shape.convolutions)
    matrix, bias = weights[first].astype(np.float64), weights[first + 1].astype(np.float64)
    for i in range(first + 2, len(weights), 2):
        matrix, bias = weights[i] @ matrix, weights[i] @ bias + weights[i + 1]
    return [*weights[:first], matrix.astype(np.float32), bias.astype(np.float32)]


def network_of(network: str, weights: Weights) -> RepairNetwork:
    shape = NETWORKS[network]
    return RepairNetwork(
        [np.ascontiguousarray(array) for array in folded(network, weights)],
        [stride for _, _, stride in shape.convolutions],
    )


@lru_cache(maxsize=16)
def shipped(network: str) -> RepairNetwork:
    """A network with the weights that come with the package.

    Raises:
        ConfigError: there is no such network.
    """
    if network not in NETWORKS:
        raise ConfigError("network", f"no network '{network}'; there are {', '.join(NETWORKS)}")
    return network_of(*read_weights(SHIPPED / f"{network}.npz"))


def from_file(path: Path) -> RepairNetwork:
    """A network with the weights that are in a file now.

    Raises:
        ConfigError: the file has none.
    """
    return network_of(*read_weights(path))
