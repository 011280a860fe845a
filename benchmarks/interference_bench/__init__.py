# SPDX-License-Identifier: Apache-2.0
"""Pairs of workflows run for real on one node, and the interference model fitted to them."""
