# SPDX-License-Identifier: Apache-2.0
"""What holds for all tests."""

from hypothesis import HealthCheck, settings

# How long an example takes says nothing of what is tested: it depends on what else runs.
settings.register_profile("no clock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no clock")
