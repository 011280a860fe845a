# SPDX-License-Identifier: Apache-2.0
"""What every policy must do, and the worlds in which it is tried.

`pytest --schedbridge-policy NAME` runs it on an installed policy. These are tests, under the rules
of tests: nothing of schedbridge imports this package, and it imports nothing of `tests/`.
Start with `builders.py`.
"""
