# SPDX-License-Identifier: Apache-2.0
"""Training of the placement networks (`schedbridge train`). Only this package needs torch.

`windows` and `environment` work without it.
"""
