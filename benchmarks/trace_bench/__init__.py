# SPDX-License-Identifier: Apache-2.0
"""Parts of benchmarks/traces.py: figures and plots."""
