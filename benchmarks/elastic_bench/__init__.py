# SPDX-License-Identifier: Apache-2.0
"""Parts of the benchmarks of running jobs that change their width on real clusters."""
