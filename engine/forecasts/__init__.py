"""Forecasts of the start of waiting pods, from recorded holds. Pure.

first_end  the time until the first of several pods ends, from lengths of earlier holds
starts     the pods whose end lets a waiting pod start, and the forecast of that
outlook    the answer: what comes before a pod, and its forecast where the record of forecasts proves it
"""
