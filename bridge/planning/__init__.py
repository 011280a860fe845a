# SPDX-License-Identifier: Apache-2.0
"""From a snapshot to what the kernels plan with: who may use which nodes when."""
