# SPDX-License-Identifier: Apache-2.0
"""The wire: server, session, converters; pb/ is generated."""
