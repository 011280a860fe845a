# SPDX-License-Identifier: Apache-2.0
"""The frozen nouns: nodes, jobs, snapshot, plan, reasons. Nothing here decides anything."""
