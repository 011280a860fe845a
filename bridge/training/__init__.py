# SPDX-License-Identifier: Apache-2.0
"""Training of the networks that put jobs back (`schedbridge train`). Only this package needs torch.

Its modules import torch themselves or not at all: `windows` and `environment` do without.
"""
