# SPDX-License-Identifier: Apache-2.0
"""All suites before a release: what each protects, and what became of it at which commit."""
