"""Graded exercises: checks that name the mistake, and a grader that cannot be fooled.

A student's code runs in a process of its own, in the strongest sandbox the system has;
checks run here and see only data. Read in this order: ``wire`` what crosses, ``box``
the inside, ``sandbox`` the outside, ``exercise`` what is asked, ``checks`` how an
answer is judged, ``submission`` what was handed in, ``session`` how it is run,
``report`` what comes out, ``command`` the command line. ``practice`` gives instant
feedback in a notebook; ``authoring`` writes what students and readers see.
"""
