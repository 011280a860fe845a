# SPDX-License-Identifier: Apache-2.0
"""Node sets as the kernels take them: rows of 64-bit words, node i is bit i % 64 of word i // 64.

Packing goes through NumPy's bit packing, so 10,000 nodes take microseconds.
"""

import numpy as np
from numpy.typing import NDArray


def pack_nodes(member: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Pack membership masks into bitsets.

    Args:
        member: (n_sets, n_nodes) or (n_nodes,) bool.

    Returns:
        (n_sets, n_words) or (n_words,) uint64 with ``n_words = ceil(n_nodes / 64)``.
    """
    n_nodes = member.shape[-1]
    n_words = -(-n_nodes // 64)
    packed = np.zeros((*member.shape[:-1], n_words * 8), dtype=np.uint8)
    packed[..., : -(-n_nodes // 8)] = np.packbits(member, axis=-1, bitorder="little")
    return packed.view("<u8").astype(np.uint64, copy=False)


def unpack_nodes(words: NDArray[np.uint64], n_nodes: int) -> NDArray[np.bool_]:
    """Unpack bitsets into membership masks; the reverse of ``pack_nodes``.

    Args:
        words: (n_sets, n_words) or (n_words,) uint64.

    Returns:
        (n_sets, n_nodes) or (n_nodes,) bool.
    """
    octets = np.ascontiguousarray(words, dtype="<u8").view(np.uint8)
    return np.unpackbits(octets, axis=-1, count=n_nodes, bitorder="little").view(np.bool_)
