# SPDX-License-Identifier: Apache-2.0
"""What benchmarks/traces.py runs, measures and draws."""
