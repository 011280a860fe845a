# SPDX-License-Identifier: Apache-2.0
"""Generated from proto/ by scripts/protoc; a test regenerates and compares."""
