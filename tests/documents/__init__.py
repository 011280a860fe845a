# SPDX-License-Identifier: Apache-2.0
"""The how-to pages as tests: their commands are run, their configurations loaded.

`README.md` describes the marks in the pages. `pages` reads pages, `marks` the marks, `host`,
`cluster` and `container` are the places where blocks run, `stated` compares output, `loading` loads
configurations. `inline` finds commands within sentences, `parsing` and `slurm_parsers` parse them,
`listing` says what becomes of each.
"""
