# SPDX-License-Identifier: Apache-2.0
"""How lines and bars of policies differ: by colour and by dash.

The colours are Okabe and Ito's, safe for colour-blind eyes.
"""

from typing import Final

LINE_COLOURS: Final = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000",
)  # fmt: skip
DASHES: Final[tuple[tuple[float, ...], ...]] = ((), (5, 2), (1, 1.5), (6, 2, 1, 2))
