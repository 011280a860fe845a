# SPDX-License-Identifier: Apache-2.0
"""Training of the placement networks (`schedbridge lab train`). Only this package needs torch.

Imports policies and the model; `windows` and `environment` work without torch. Start with `ppo.py`.
"""
