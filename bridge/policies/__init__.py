# SPDX-License-Identifier: Apache-2.0
"""One file per algorithm, one folder per stage; `bridge.registry` gives them their names."""
