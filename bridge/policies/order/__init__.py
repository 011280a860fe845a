# SPDX-License-Identifier: Apache-2.0
"""Stage `order`: who is considered first."""
