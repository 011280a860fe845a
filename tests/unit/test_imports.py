# SPDX-License-Identifier: Apache-2.0
"""No module imports, through others, itself; import-linter has the rules for whole packages."""

from graphlib import TopologicalSorter

import grimp


def test_modules_do_not_import_each_other_in_a_circle():
    """Imports for type checkers count as well."""
    graph = grimp.build_graph("bridge", exclude_type_checking_imports=False)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    TopologicalSorter(imports).prepare()  # a CycleError names the circle
