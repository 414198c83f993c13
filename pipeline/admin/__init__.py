"""Commands of an operator.

``provision``  makes topics and index templates, or corrects them
``retention``  deletes daily indices that are older than they are kept
"""
